"""The devices that a job's cgroup allows: cgroup v1, `devices.list` of slurm_NODE/uid_U/job_J.

cgroup v2 keeps its rules in a BPF program that cannot be read without more rights, and a v1 list that still says
"a *:*" denies only what it does not name: in both cases this source is silent.
"""

import re
from pathlib import Path
from typing import Final

from gpuwaste.agent.facts.base import LocalRun, MinorFacts
from gpuwaste.core.sample import MapSource

_MAJOR: Final = 195  # of /dev/nvidiaN; 254 and 255 are nvidia-modeset and nvidiactl
_CONTROL: Final = 254
_LINE = re.compile(r"([abc]) (\d{1,9}|\*):(\d{1,9}|\*) [rwm]+")
_TRIES: Final = 6  # ticks in which a run's cgroup may turn up


class CgroupSource:
    """Reads a run's device list once."""

    name = MapSource.CGROUP

    def __init__(self, node: str, root: Path, proc: Path = Path("/proc")) -> None:
        self._tops = (root / "devices" / f"slurm_{node}", root / "devices" / "slurm")
        self._devices = proc / "devices"
        self._found: dict[tuple[int, int], MinorFacts | None] = {}
        self._tries: dict[tuple[int, int], int] = {}
        self.health = "" if any(top.exists() for top in self._tops) else "no cgroup v1 device lists on this node"

    def facts(self, run: LocalRun) -> MinorFacts | None:
        """Return the minors that the run's cgroup names."""
        if run.ident in self._found:
            return self._found[run.ident]
        tries = self._tries.get(run.ident, 0)
        if tries >= _TRIES:
            return None
        self._tries[run.ident] = tries + 1
        found = self._read(run.job_id)
        if found is not None:
            self._found[run.ident] = found
            while len(self._found) > 4096:  # noqa: PLR2004 runs, far above what a node holds at a time
                del self._found[next(iter(self._found))]
            self._tries.pop(run.ident, None)
        return found

    def _read(self, job_id: int) -> MinorFacts | None:
        for top in self._tops:
            for path in top.glob(f"uid_*/job_{job_id}/devices.list"):
                try:
                    facts = parse_devices(path.read_text(encoding="ascii", errors="replace"), self._caps_major())
                except OSError as error:
                    self.health = f"{path}: {error.strerror}"
                    continue
                self.health = ""
                return facts
        return None

    def _caps_major(self) -> int | None:
        try:
            match = re.search(r"^ *(\d+) nvidia-caps$", self._devices.read_text(encoding="ascii"), re.MULTILINE)
        except OSError:
            return None
        return int(match[1]) if match else None


def parse_devices(text: str, caps_major: int | None) -> MinorFacts | None:
    """Read a v1 devices.list; None where it does not tell one GPU from another."""
    minors, caps = set(), set()
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None or match[1] == "b":
            continue
        if match[1] == "a" or match[2] == "*" or (match[2] == str(_MAJOR) and match[3] == "*"):
            return None
        if match[2] == str(_MAJOR) and int(match[3]) < _CONTROL:
            minors.add(int(match[3]))
        elif caps_major is not None and match[2] == str(caps_major) and match[3] != "*":
            caps.add(int(match[3]))
    return MinorFacts(frozenset(minors), frozenset(caps)) if minors else None
