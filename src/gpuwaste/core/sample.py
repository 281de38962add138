"""One reading of one GPU at one instant (CONTRACTS.md, "Sample"); a field that could not be read is None, never 0."""

from dataclasses import dataclass
from enum import StrEnum

from gpuwaste.core.run import RunKey


class MapSource(StrEnum):
    """Where the agent learned which job holds the GPU, in the order in which it trusts a tie."""

    PROLOG = "prolog"  # the prolog's file under the run directory
    CGROUP = "cgroup"  # the devices that the job's cgroup allows
    HUB = "hub"  # the hub's one map of the whole cluster (IDX of scontrol show job -d)
    SLURMCTLD = "slurmctld"  # IDX of scontrol show job -d, asked by this agent
    ENVIRON = "environ"  # only in rows and recordings of agents before 0.2: the job's user can write it
    NONE = "none"


class Confidence(StrEnum):
    """How sure the attribution is."""

    CONFIRMED = "confirmed"  # two independent sources agree
    SINGLE = "single"  # one source, nothing contradicts it
    CONFLICT = "conflict"  # sources disagree: unattributed, never waste
    NONE = "none"  # nobody holds the GPU, as far as is known


@dataclass(frozen=True, slots=True)
class Sample:
    """One row of the node store. It covers (previous sample of the GPU, t_utc_us]."""

    t_utc_us: int
    mono_us: int
    gpu_uuid: str
    instance: str  # "" for a whole GPU, else the MIG instance as "gi/ci"
    source: str  # collector that read it: nvml, pcp
    util_pct: float | None = None  # duty cycle over the covered time, 0..100
    mem_used_b: int | None = None
    mem_total_b: int | None = None
    power_mw: int | None = None
    power_limit_mw: int | None = None
    energy_mj: int | None = None
    sm_ratio: float | None = None  # share of SMs busy, 0..1, where GPM has it
    procs: int | None = None  # compute processes of the holding job; None is not 0
    job_id: int | None = None  # known before run_key is: the start comes from the hub's map or slurmctld
    run_key: RunKey | None = None
    map_source: MapSource = MapSource.NONE
    confidence: Confidence = Confidence.NONE
    reason: str = ""  # why there is no utilization or no attribution: a key of AllocationHour.unknown_ms
