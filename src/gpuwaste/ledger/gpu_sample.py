"""One reading of one GPU at one instant (CONTRACTS.md, "Sample"); a field that could not be read is None, never 0."""

from dataclasses import dataclass
from enum import StrEnum

from gpuwaste.slurm.run_key import RunKey


class MapSource(StrEnum):
    """Where the agent learned which job holds the GPU; in a tie the earlier source wins."""

    PROLOG = "prolog"  # the prolog's file under the run directory
    CGROUP = "cgroup"  # the devices that the job's cgroup allows
    HUB = "hub"  # the hub's one map of the whole cluster (IDX of scontrol show job -d)
    SLURMCTLD = "slurmctld"  # IDX of scontrol show job -d, run by this agent
    NONE = "none"


class Confidence(StrEnum):
    """How sure the attribution is."""

    CONFIRMED = "confirmed"  # two independent sources agree
    SINGLE = "single"  # one source, nothing contradicts it
    CONFLICT = "conflict"  # sources disagree: unattributed, never waste
    NONE = "none"  # no known holder


class UnknownReason(StrEnum):
    """Why a GPU's time is unknown: the keys of AllocationHour.unknown_ms. Other versions may send other keys."""

    NONE = ""  # the time is known
    GAP = "gap"  # no sample for more than 2.5 intervals
    CLOCK_STEP = "clock_step"  # the wall clock was set
    NOT_SUPPORTED = "not_supported"  # the GPU reports no utilization
    INVALID = "invalid"  # the utilization that was read is outside 0..100
    GPU_LOST = "gpu_lost"  # fell off the bus, or waits for a reset
    DRIVER = "driver"  # the driver does not answer, or cannot be opened
    RELEASED = "released"  # the GPUs were closed by `gpuwaste agent release`
    NOT_IN_NVML = "not_in_nvml"  # Slurm allocates a GPU that the driver does not list
    MIG = "mig"  # a MIG instance without GPM
    PARTITION = "partition"  # a partition of an AMD GPU of which the library has no utilization
    CONFLICT = "conflict"  # sources disagree about the job
    UNREPORTED = "unreported"  # no row covers this part of the allocation; set by the ledger
    NO_AGENT = "no_agent"  # no row of this GPU at all; set by the ledger
    MEAN_ONLY = "mean_only"  # no row, but a mean in accounting; set by the ledger


@dataclass(frozen=True, slots=True)
class Sample:
    """One row of the node store. It covers (previous sample of the GPU, t_utc_us]."""

    t_utc_us: int
    mono_us: int
    gpu_uuid: str
    instance: str  # "" for a whole GPU, else the MIG instance as "gi/ci"
    source: str  # collector that read it: nvml, amd, intel, pcp
    util_pct: float | None = None  # duty cycle over the covered time, 0..100
    mem_used_b: int | None = None
    mem_total_b: int | None = None
    power_mw: int | None = None
    power_limit_mw: int | None = None
    energy_mj: int | None = None
    sm_ratio: float | None = None  # share of SMs busy, 0..1, where GPM provides it
    procs: int | None = None  # compute processes of the holding job; None is not 0
    job_id: int | None = None  # known before run_key is: the start is from the hub's map or slurmctld
    run_key: RunKey | None = None
    map_source: MapSource = MapSource.NONE
    confidence: Confidence = Confidence.NONE
    reason: str = ""  # why there is no utilization or no attribution: a key of AllocationHour.unknown_ms
