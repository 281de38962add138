"""SLURM_JOB_GPUS in the environment of the batch script, as slurmstepd handed it over.

Only a child of slurmstepd that belongs to the batch (or interactive) step is asked: in the tasks of a step the variable
is that of the node on which srun ran. Reading another user's environ needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH;
without them the source is silent.
"""

from pathlib import Path
from typing import Final

from gpuwaste.agent.facts.base import LocalRun, PositionFacts
from gpuwaste.core.errors import ParseError
from gpuwaste.core.sample import MapSource
from gpuwaste.slurm.gres import parse_positions
from gpuwaste.slurm.stepd import BATCH_STEP, INTERACTIVE_STEP

_BATCH: Final = frozenset({"", "batch", "interactive", str(BATCH_STEP), str(INTERACTIVE_STEP)})
_TRIES: Final = 6  # ticks in which a run's batch script may turn up
_STAT_PARENT: Final = 1  # field after the state in /proc/PID/stat


class EnvironSource:
    """Looks until it has found the batch script of a run, then remembers."""

    name = MapSource.ENVIRON

    def __init__(self, node: str, cluster: str, proc: Path = Path("/proc")) -> None:
        self._node = node
        self._cluster = cluster
        self._proc = proc
        self._found: dict[tuple[int, int], PositionFacts | None] = {}
        self._tries: dict[tuple[int, int], int] = {}
        self.health = ""

    def facts(self, run: LocalRun) -> PositionFacts | None:
        """Return the positions that the batch script was given."""
        if run.ident in self._found:
            return self._found[run.ident]
        tries = self._tries.get(run.ident, 0)
        if not run.pids or not run.anchored or tries >= _TRIES:
            return None
        self._tries[run.ident] = tries + 1
        for pid in sorted(run.pids):
            values = self._environ(pid)
            if values is not None and self._is_batch(values, run.job_id):
                self._remember(run, _facts(values))
                return self._found[run.ident]
        return None

    def _remember(self, run: LocalRun, facts: PositionFacts | None) -> None:
        self._found[run.ident] = facts
        while len(self._found) > 4096:  # noqa: PLR2004 runs, far above what a node holds at a time
            del self._found[next(iter(self._found))]
        self._tries = {ident: tries for ident, tries in self._tries.items() if ident not in self._found}

    def _is_batch(self, values: dict[str, str], job_id: int) -> bool:
        if values.get("SLURM_JOB_ID") != str(job_id) or values.get("SLURMD_NODENAME") != self._node:
            return False
        step = values.get("SLURM_STEP_ID", values.get("SLURM_STEPID", ""))
        return values.get("SLURM_CLUSTER_NAME", self._cluster) == self._cluster and step in _BATCH

    def _environ(self, pid: int) -> dict[str, str] | None:
        """Return the environment of a child of slurmstepd."""
        try:
            stat = (self._proc / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
            parent = stat.rpartition(")")[2].split()[_STAT_PARENT]
            if (self._proc / parent / "comm").read_text(encoding="ascii", errors="replace").strip() != "slurmstepd":
                return None
            raw = (self._proc / str(pid) / "environ").read_bytes()
        except PermissionError:
            self.health = "environ of jobs cannot be read: needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
            return None
        except (OSError, IndexError):
            return None  # the process ended meanwhile
        self.health = ""
        pairs = (item.partition("=") for item in raw.decode("utf-8", "replace").split("\0"))
        return {key: value for key, equals, value in pairs if equals}


def _facts(values: dict[str, str]) -> PositionFacts | None:
    try:
        positions = frozenset(parse_positions(values.get("SLURM_JOB_GPUS", "")))
    except ParseError:
        return None
    shards = values.get("SLURM_SHARDS_ON_NODE", "0")
    known = shards.isascii() and shards.isdigit() and len(shards) < 7  # noqa: PLR2004 more than any node has
    if "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" in values:
        known = False  # a part of the GPU, which only slurmctld tells
    return PositionFacts(positions, int(shards) if known else None) if positions else None
