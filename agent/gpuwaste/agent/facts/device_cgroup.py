"""The devices that a job's cgroup allows: cgroup v1, `devices.list` of slurm_NODE/uid_U/job_J.

cgroup v2 keeps its rules in a BPF program that cannot be read without more privileges, and a v1 list that still has
"a *:*" denies only devices that it does not name: in both cases this source has no data.
"""

import re
from pathlib import Path
from typing import Final

from gpuwaste.agent.facts.run_facts import LocalRun, MinorFacts
from gpuwaste.ledger.gpu_sample import MapSource
from gpuwaste.slurm.formats.gpu_positions import DRM_MAJOR, NVIDIA_MAJOR, DeviceNode

CGROUP_ROOT: Final = Path("/sys/fs/cgroup")  # where systemd and slurmd mount it
_CONTROL: Final = 254  # nvidia-modeset; 255 is nvidiactl
_LINE = re.compile(r"([abc]) (\d{1,9}|\*):(\d{1,9}|\*) [rwm]+")
_TRIES: Final = 6  # ticks within which a run's cgroup may appear


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
    """Parse a v1 devices.list; None where it does not distinguish GPUs."""
    minors: set[int] = set()
    caps: set[int] = set()
    others: set[DeviceNode] = set()
    rules = [match for line in text.splitlines() if (match := _LINE.fullmatch(line.strip())) and match[1] != "b"]
    if any(match[1] == "a" or match[2] == "*" or match.group(2, 3) == (str(NVIDIA_MAJOR), "*") for match in rules):
        return None
    for major, minor in ((match[2], match[3]) for match in rules if match[3] != "*"):
        if major == str(DRM_MAJOR):
            others.add(DeviceNode(DRM_MAJOR, int(minor)))
        elif major == str(NVIDIA_MAJOR) and int(minor) < _CONTROL:
            minors.add(int(minor))
        elif caps_major is not None and major == str(caps_major):
            caps.add(int(minor))
    if any(match[2] == str(DRM_MAJOR) and match[3] == "*" for match in rules):
        others.clear()  # every render node is allowed: no information about them
    return MinorFacts(frozenset(minors), frozenset(caps), frozenset(others)) if minors or others else None
