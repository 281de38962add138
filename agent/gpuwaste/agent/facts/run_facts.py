"""What a source of facts says about a run of a job on this node, and what it is asked with."""

from dataclasses import dataclass, field
from typing import Protocol

from gpuwaste.ledger.gpu_sample import MapSource
from gpuwaste.slurm.formats.gpu_positions import DeviceNode


@dataclass(slots=True)
class LocalRun:
    """One run of a job on this node, as slurmstepd's sockets and the prolog's file tell it; times are UTC microseconds.

    `steps` maps a step that runs now to its socket's time. `anchored`: a step was seen that lives as long as the job
    does here (batch, extern, interactive), so that the end of the last socket is the end of the run. `certain`: the
    run is known to hold its GPUs at this moment.
    """

    job_id: int
    since_us: int
    seen_us: int
    steps: dict[int, int] = field(default_factory=dict)
    anchored: bool = False
    certain: bool = True
    prolog_us: int | None = None
    start: int | None = None  # of the run key, where the prolog was told it
    restarts: int | None = None
    pids: frozenset[int] = frozenset()
    end_us: int | None = None
    after_us: int = 0  # end of the job's previous run here, 0 for none
    vouched_us: int = 0  # when somebody else last said that the run stands

    @property
    def ident(self) -> tuple[int, int]:
        """What tells this run from another of the same job."""
        return self.job_id, self.since_us


@dataclass(frozen=True, slots=True)
class PositionFacts:
    """Positions in the node's gres list (Slurm's IDX). `share` is the part of each GPU, None where it is not told."""

    positions: frozenset[int]
    shards: int | None = None  # 0 where the GPUs are held whole, None where the source cannot tell


@dataclass(frozen=True, slots=True)
class MinorFacts:
    """Device numbers: minors of /dev/nvidiaN and of nvidia-caps devices (MIG), and whole numbers of other drivers."""

    minors: frozenset[int]
    cap_minors: frozenset[int] = frozenset()
    others: frozenset[DeviceNode] = frozenset()


Facts = PositionFacts | MinorFacts


class FactSource(Protocol):
    """One way to learn which GPUs a run holds. Never raises: a source that cannot read is silent and says why."""

    name: MapSource
    health: str  # empty while the source works, else why it is silent

    def facts(self, run: LocalRun) -> Facts | None:
        """Return what is known of the run, None where the source says nothing. Called at each tick."""
        ...
