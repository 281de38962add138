"""Types shared by the agent's parts: identities and readings of GPUs, use of the host, holdings of jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gpuwaste.ledger.gpu_sample import Confidence, MapSource, UnknownReason
from gpuwaste.slurm.formats.gpu_positions import NVIDIA_MAJOR, DeviceNode
from gpuwaste.slurm.run_key import RunKey


@dataclass(frozen=True, slots=True)
class GpuIdentity:
    """The constant facts of a GPU, or a MIG instance of one, until the driver is reset."""

    uuid: str
    index: int  # the vendor library's, for NVML in PCI order
    minor: int | None  # of /dev/nvidiaN or /dev/dri/renderDN; of the nvidia-caps device for a MIG instance
    name: str = ""
    pci_bus_id: str = ""
    mem_total_b: int | None = None
    power_limit_mw: int | None = None
    parent_uuid: str = ""  # of the full GPU, for a MIG instance
    instance: str = ""  # "gi/ci" for a MIG instance, the number of a partition
    vendor: str = "nvidia"
    nodes: tuple[DeviceNode, ...] = ()  # device files of this GPU, if they are not /dev/nvidiaN

    @property
    def device_nodes(self) -> tuple[DeviceNode, ...]:
        """The device files of this GPU or partition; a MIG instance has none."""
        if self.nodes or self.minor is None or self.instance:
            return self.nodes
        return (DeviceNode(NVIDIA_MAJOR, self.minor),)


@dataclass(frozen=True, slots=True)
class GpuProfile:
    """The profiling counters of one GPU; None is "could not be read"."""

    sm_active: float | None = None  # share of multiprocessors with work, mean over time, 0..1
    tensor_active: float | None = None  # share of cycles in which the tensor cores were active, 0..1
    dram_active: float | None = None  # share of cycles in which GPU memory sent or received data, 0..1
    nvlink_b_s: float | None = None  # bytes per second, sent and received
    pcie_b_s: float | None = None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One collector's reading of one GPU at one instant; None is "could not be read", for `reason`."""

    uuid: str
    duty: tuple[tuple[int, float], ...] = ()  # the driver's own samples: (UTC microseconds, percent), oldest first
    util_pct: float | None = None  # mean over the time since the previous reading
    mem_used_b: int | None = None
    mem_total_b: int | None = None
    power_mw: int | None = None
    energy_mj: int | None = None  # counter since the driver was loaded
    sm_ratio: float | None = None
    pids: frozenset[int] | None = None  # compute processes
    profile: GpuProfile | None = None  # from a profile collector
    reason: UnknownReason = UnknownReason.NONE


@dataclass(frozen=True, slots=True)
class GpuScan:
    """All GPUs of the node as read by one collector."""

    source: str
    gpus: tuple[GpuIdentity, ...]
    readings: dict[str, GpuReading]  # by uuid
    generation: int = 0  # grows when identities may have changed: start, driver reset, MIG change
    xids: dict[tuple[str, int], int] = field(default_factory=dict)  # (uuid, Xid) -> critical errors since the start


@dataclass(frozen=True, slots=True)
class HostUse:
    """A job's use of the host; counters start with the job."""

    cpu_s: float | None = None
    mem_b: int | None = None
    pids: frozenset[int] = frozenset()
    suspended: bool = False  # every process is stopped or frozen


@dataclass(frozen=True, slots=True)
class PackageReading:
    """The energy counters of all CPU packages of the node, added up; those of two generations cannot be compared."""

    energy_j: float  # since the generation began
    generation: int
    cpus: int  # online


@dataclass(frozen=True, slots=True)
class GpuAllocation:
    """A GPU held by a run of a job on this node, from the device map at one instant."""

    job_id: int
    gpu_uuid: str
    since_us: int  # UTC microseconds at which the job's run began on this node, by local facts
    run_key: RunKey | None = None  # None until the start is known
    share: float = 1.0
    map_source: MapSource = MapSource.NONE
    confidence: Confidence = Confidence.NONE
    suspended: bool = False
    reason: str = UnknownReason.NONE  # of a conflict

    @property
    def conflict(self) -> str:
        """Why nothing that the GPU does is the job's; empty where it is."""
        return (self.reason or UnknownReason.CONFLICT) if self.confidence is Confidence.CONFLICT else ""


@dataclass(frozen=True, slots=True)
class JobMap:
    """The device map at one instant: what is held, and which runs ended since the last one."""

    holdings: tuple[GpuAllocation, ...] = ()
    ended: tuple[tuple[int, int], ...] = ()  # (job id, UTC microseconds of its end on this node)
    late_keys: tuple[
        tuple[int, int, RunKey], ...
    ] = ()  # (job id, since_us, key) of runs that ended before it was known
    unmapped: dict[str, UnknownReason] = field(default_factory=dict)  # gpu uuid -> reason of a conflict


class GpuCollector(Protocol):
    """Reads all GPUs of the node. A failure is raised as CollectorError, and affects only this collector."""

    name: str

    def scan(self) -> GpuScan:
        """Read every GPU once. Called from the sampling thread only."""
        ...

    def close(self) -> None:
        """Release the driver, so that a GPU can be reset; the next scan opens it again."""
        ...


class ProfileCollector(Protocol):
    """Reads profiling counters of GPUs that another collector lists. A failure is raised as CollectorError."""

    name: str

    def profiles(self) -> Mapping[tuple[str, str], GpuProfile]:
        """Return profiles by (uuid of the full GPU, GPU instance or ""). Called from the sampling thread only."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class HostCollector(Protocol):
    """Reads each job's use of the host. A failure is raised as CollectorError."""

    name: str

    def use(self) -> dict[int, HostUse]:
        """Return the use of every job that has a process here, by job id. Called from the sampling thread only."""
        ...

    def close(self) -> None:
        """Clear the cache."""
        ...


class PackageCollector(Protocol):
    """Reads the energy of the node's CPU packages. A failure is raised as CollectorError."""

    name: str

    def read(self) -> PackageReading:
        """Return the counters. Called from the sampling thread only."""
        ...

    def close(self) -> None:
        """Forget the last reading."""
        ...


def with_profiles(
    gpus: Sequence[GpuIdentity],
    readings: Mapping[str, GpuReading],
    profiles: Mapping[tuple[str, str], GpuProfile],
) -> dict[str, GpuReading]:
    """Return the readings with the profiles of their GPUs; profiles of GPUs that are not in `gpus` are left out.

    A profile never changes a utilization. If the driver reports work and every ratio is 0, the counters are not running
    (another profiler holds them): the profile is left out. A profile that a reading already has is kept.
    """
    found = dict(readings)
    for gpu in gpus:
        reading = found.get(gpu.uuid)
        profile = profiles.get((gpu.parent_uuid or gpu.uuid, gpu.instance.partition("/")[0]))
        if reading is not None and profile is not None and reading.profile is None and not _stopped(reading, profile):
            found[gpu.uuid] = replace(reading, profile=profile)
    return found


def _stopped(reading: GpuReading, profile: GpuProfile) -> bool:
    ratios = (profile.sm_active, profile.tensor_active, profile.dram_active)
    return bool(reading.util_pct) and not any(ratios)
