"""What the agent's parts hand to each other: identities and readings of GPUs, use of the host, holdings of jobs."""

from dataclasses import dataclass, field
from typing import Protocol

from gpuwaste.core.run import RunKey
from gpuwaste.core.sample import Confidence, MapSource, UnknownReason


@dataclass(frozen=True, slots=True)
class GpuIdentity:
    """What does not change about a GPU, or a MIG instance of one, until the driver is reset."""

    uuid: str
    index: int  # NVML's, in PCI order
    minor: int | None  # of /dev/nvidiaN; of the nvidia-caps device for a MIG instance
    name: str = ""
    pci_bus_id: str = ""
    mem_total_b: int | None = None
    power_limit_mw: int | None = None
    parent_uuid: str = ""  # of the whole GPU, for a MIG instance
    instance: str = ""  # "gi/ci" for a MIG instance


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One collector's reading of one GPU at one instant; None is "could not be read", `reason` says why."""

    uuid: str
    duty: tuple[tuple[int, float], ...] = ()  # the driver's own samples: (UTC microseconds, percent), oldest first
    util_pct: float | None = None  # mean over the time since the previous reading
    mem_used_b: int | None = None
    mem_total_b: int | None = None
    power_mw: int | None = None
    energy_mj: int | None = None  # counter since the driver was loaded
    sm_ratio: float | None = None
    pids: frozenset[int] | None = None  # compute processes
    reason: UnknownReason = UnknownReason.NONE


@dataclass(frozen=True, slots=True)
class GpuScan:
    """All GPUs of the node as one collector saw them."""

    source: str
    gpus: tuple[GpuIdentity, ...]
    readings: dict[str, GpuReading]  # by uuid
    generation: int = 0  # grows when identities may have changed: start, driver reset, MIG change
    xids: dict[tuple[str, int], int] = field(default_factory=dict)  # (uuid, Xid) -> critical errors since the start


@dataclass(frozen=True, slots=True)
class HostUse:
    """What a job uses of the host; counters start with the job."""

    cpu_s: float | None = None
    mem_b: int | None = None
    pids: frozenset[int] = frozenset()
    suspended: bool = False  # every process is stopped or frozen


@dataclass(frozen=True, slots=True)
class Holding:
    """A GPU held by a run of a job on this node, as the device map knows it at one instant."""

    job_id: int
    gpu_uuid: str
    since_us: int  # UTC microseconds at which the job's run began on this node, by local facts
    run_key: RunKey | None = None  # None until the start is known
    share: float = 1.0
    map_source: MapSource = MapSource.NONE
    confidence: Confidence = Confidence.NONE
    suspended: bool = False
    reason: UnknownReason = UnknownReason.NONE  # of a conflict


@dataclass(frozen=True, slots=True)
class JobMap:
    """The device map at one instant: which holdings stand, and which runs ended since the last one."""

    holdings: tuple[Holding, ...] = ()
    ended: tuple[tuple[int, int], ...] = ()  # (job id, UTC microseconds of its end on this node)
    late_keys: tuple[
        tuple[int, int, RunKey], ...
    ] = ()  # (job id, since_us, key) of runs that ended before it was known
    unmapped: dict[str, UnknownReason] = field(default_factory=dict)  # gpu uuid -> reason of a conflict


class GpuCollector(Protocol):
    """Reads all GPUs of the node. A failure is raised as CollectorError, and only this collector fails."""

    name: str

    def scan(self) -> GpuScan:
        """Read every GPU once. Called from the sampling thread only."""
        ...

    def close(self) -> None:
        """Let go of the driver, so that a GPU can be reset; the next scan opens it again."""
        ...


class HostCollector(Protocol):
    """Reads what each job of this node uses of the host. A failure is raised as CollectorError."""

    name: str

    def use(self) -> dict[int, HostUse]:
        """Return the use of every job that has a process here, by job id. Called from the sampling thread only."""
        ...

    def close(self) -> None:
        """Forget what was cached."""
        ...
