"""The facts of a source about a run of a job on this node, and the run as its input."""

from dataclasses import dataclass, field
from typing import Protocol

from gpuwaste.ledger.gpu_sample import MapSource
from gpuwaste.slurm.formats.gpu_positions import DeviceNode


@dataclass(slots=True)
class LocalRun:
    """One run of a job on this node, from slurmstepd's sockets and the prolog's file; times are UTC microseconds.

    `steps` maps a running step to its socket's time. `anchored`: a step was seen that lives as long as the job does
    here (batch, extern, interactive), so that the end of the last socket is the end of the run. `certain`: the run is
    known to hold its GPUs at this moment.
    """

    job_id: int
    since_us: int
    seen_us: int
    steps: dict[int, int] = field(default_factory=dict)
    anchored: bool = False
    certain: bool = True
    prolog_us: int | None = None
    start: int | None = None  # of the run key, where the prolog received it
    restarts: int | None = None
    pids: frozenset[int] = frozenset()
    end_us: int | None = None
    after_us: int = 0  # end of the job's previous run here, 0 for none
    vouched_us: int = 0  # when the hub or slurmctld last confirmed the run

    @property
    def ident(self) -> tuple[int, int]:
        """The identity of this run among those of the same job."""
        return self.job_id, self.since_us


@dataclass(frozen=True, slots=True)
class PositionFacts:
    """Positions in the node's gres list (Slurm's IDX), and the number of shards."""

    positions: frozenset[int]
    shards: int | None = None  # 0 where the GPUs are not shared, None where the source has no information


@dataclass(frozen=True, slots=True)
class MinorFacts:
    """Device numbers: minors of /dev/nvidiaN and of nvidia-caps devices (MIG), and whole numbers of other drivers."""

    minors: frozenset[int]
    cap_minors: frozenset[int] = frozenset()
    others: frozenset[DeviceNode] = frozenset()


Facts = PositionFacts | MinorFacts


class FactSource(Protocol):
    """A source for which GPUs a run holds. Never raises: if it cannot read, it returns None and sets `health`."""

    name: MapSource
    health: str  # empty while the source works, else why it has no data

    def facts(self, run: LocalRun) -> Facts | None:
        """Return the facts about the run, None where the source has none. Called at each tick."""
        ...
