"""The ledger of one run as judged by queries ledger_gpus and ledger_rows, and the thresholds that they use.

Each allocated GPU-millisecond is exactly one of the classes. All durations are integer milliseconds.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Self

from gpuwaste.core.hub_config import LedgerThresholds
from gpuwaste.core.underuse import UnderUse
from gpuwaste.slurm.accounting.job_record import JobRecord

VERSION: Final = 2
"""Of these rules: raise it when the same hours and thresholds give another ledger; all runs are then judged again."""

ACCOUNTED: Final = "jobstats"
"""The source of GPUs that only accounting tells of, as in the query ledger_accounted."""

THRESHOLDS: Final = tuple(f.name for f in fields(LedgerThresholds))


@dataclass(frozen=True)
class LedgerSettings(LedgerThresholds):
    """The thresholds of [hub], and for how many seconds what an agent saw may be on its way."""

    pending_s: float = 1080.0  # 900 s between two shipments, and a fifth of it for delivery

    @property
    def under_use(self) -> UnderUse:
        """The rule of under-use."""
        return UnderUse(self.underused_below_pct, self.underused_min_s, self.min_coverage)

    @property
    def run_min_s(self) -> float:
        """Seconds that a run must last before its use is judged."""
        return self.finding_min_s / 10

    @property
    def hang_min_s(self) -> float:
        """Seconds for which a busy-looking GPU must compute nothing; long collectives are legitimate."""
        return self.finding_min_s * 3

    def to_text(self) -> str:
        """Return the thresholds by which a settled run is judged, as text: without pending_s, of running jobs."""
        return json.dumps({name: getattr(self, name) for name in sorted(THRESHOLDS)})

    @classmethod
    def from_text(cls, text: str, pending_s: float) -> Self:
        """Parse the text of `to_text`; a threshold that is not in it gets its default."""
        known = {name: value for name, value in json.loads(text).items() if name in THRESHOLDS}
        return cls(**known, pending_s=pending_s)

    @classmethod
    def from_config(cls, hub: LedgerThresholds, ship_every_s: float = 900.0) -> Self:
        """Return the thresholds of [hub]; `ship_every_s` is the agents' time between two shipments."""
        return cls(**{name: getattr(hub, name) for name in THRESHOLDS}, pending_s=ship_every_s * 1.2)


class Level(StrEnum):
    """The level of a device by its mean utilization over the run, as defined in the thesis."""

    NONE = "none"
    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class DeviceUse:
    """The hub's hours of one GPU in one run, summed; None is "not known".

    A field has the name of that of AllocationHour, the wire's and the store's row, of which it is the sum or the mean.
    """

    node: str = ""
    gpu_uuid: str = ""
    share: float = 1.0
    t0_ms: int = 0
    t1_ms: int = 0
    final: bool = False
    known_ms: int = 0
    idle_ms: int = 0
    low_ms: int = 0
    high_ms: int = 0
    pct_ms: int = 0  # percent times milliseconds: the mean's numerator
    told_pct: float | None = None  # the mean of a GPU of which no hours are known
    idle_run_ms: int = 0
    suspended_ms: int = 0
    proc_seen: bool = False
    mem_max_b: int | None = None
    mem_total_b: int | None = None
    energy_j: float | None = None
    energy_ms: int | None = None  # over which it was measured
    split_j: float | None = None  # its part of which idle or not is known
    idle_energy_j: float | None = None  # the part of that at 0 %
    cpu_energy_ms: int | None = None  # over which cpu_energy_j was measured
    cpu_energy_j: float | None = None  # this GPU's part of the energy of the job's CPUs on the node
    last_active_ms: int | None = None
    power_w_at_full: float | None = None
    power_limit_w: float | None = None
    sm_ratio_at_full: float | None = None
    hang_ms: int = 0  # at 95 % and more with almost no power or almost no SM busy
    profiled_ms: int | None = None  # known time with profiling counters
    sm_active: float | None = None  # means over it, 0..1
    tensor_active: float | None = None
    dram_active: float | None = None
    nvlink_b: int | None = None  # bytes in it, both ways
    pcie_b: int | None = None
    cpu_s: float | None = None  # of the job on this node, the same in each of its GPUs' rows
    cpu_known_ms: int = 0  # the known milliseconds of the rows that have cpu_s
    host_mem_max_b: int | None = None
    map_source: str = "none"
    confidence: str = "none"
    unknown_reason: Sequence[str] = ()
    unknown_ms: Sequence[int] = ()  # in the order of the reasons

    @property
    def mean_pct(self) -> float | None:
        """Mean utilization over the known time, percent; as told where no time is known."""
        return self.pct_ms / self.known_ms if self.known_ms else self.told_pct

    @property
    def accounted(self) -> bool:
        """Whether its figures are those of accounting, not an agent's."""
        return self.map_source == ACCOUNTED

    @property
    def sm_share(self) -> float | None:
        """Mean share of multiprocessors with work while the GPU was busy, 0..1; None: too little was profiled."""
        if self.sm_active is None or not self.pct_ms or 2 * (self.profiled_ms or 0) < self.known_ms:
            return None
        return min(1.0, 100 * self.sm_active * self.known_ms / self.pct_ms)

    @property
    def memory_ratio(self) -> float | None:
        """Largest share of the GPU's memory in use, 0..1."""
        if self.mem_max_b is None or not self.mem_total_b:
            return None
        return self.mem_max_b / self.mem_total_b


@dataclass(slots=True)
class DeviceLedger:
    """One GPU of one run, judged. idle + low + moderate + high + suspended + pending + unknown = alloc."""

    use: DeviceUse
    level: Level
    alloc_ms: int
    idle_ms: int
    low_ms: int
    moderate_ms: int
    high_ms: int
    suspended_ms: int
    pending_ms: int
    idle_run_ms: int
    wasted_ms: int  # all idle time of an untouched GPU, else the runs of a minute and more
    over_ms: int  # seen by the node beyond accounting's interval, and cut
    wasted_j: float | None  # the part of the energy in wasted_ms; None: not measured
    untouched: bool
    known_ms: int  # with a utilization, inside the allocation
    due_coverage: float  # known share, 0..1, of the time due: reports not due yet are no gap
    under_used: bool | None  # None: the rule does not apply, or too little is known
    unknown: dict[str, int] = field(default_factory=dict)
    exempt: dict[str, int] = field(default_factory=dict)  # part of wasted_ms, by reason

    @property
    def unknown_ms(self) -> int:
        """Unknown milliseconds, all reasons together."""
        return sum(self.unknown.values())

    @property
    def coverage(self) -> float:
        """Known share of the allocation without suspension, 0..1; pending time counts against it."""
        active = self.alloc_ms - self.suspended_ms
        return self.known_ms / active if active > 0 else 0.0

    @property
    def mean_pct(self) -> float | None:
        """Mean utilization over the known time, percent; None where nothing is known."""
        return self.use.mean_pct


@dataclass(slots=True)
class JobLedger:
    """One run of one job: its record, its own GPUs, its shares of GPUs, and the figures of the run."""

    job: JobRecord
    whole_node: bool
    begin_ms: int
    until_ms: int  # accounting's end, or now
    ran_ms: int  # wall time without suspension
    due_coverage: float  # the lowest of its own GPUs; 1 without any
    beyond: int  # GPUs that agents reported beyond accounting's count: they do not count
    node_cpu_ratio: float | None  # CPU time on the GPU nodes over the CPUs there, while agents sampled
    cpu_used_s: float | None
    cpu_held_s: float | None
    memory_ratio: float | None  # largest share of the requested host memory in use
    small: Mapping[str, Any] | None  # for a run that could share a GPU
    candidate: Sequence[str]  # the findings whose minimum conditions are met
    devices: tuple[DeviceLedger, ...]
    shared: tuple[DeviceLedger, ...]

    @property
    def running(self) -> bool:
        """Whether the run has not ended: its judgement is provisional."""
        return self.job.end is None

    @property
    def wasted_ms(self) -> int:
        """GPU-milliseconds wasted on the job's own GPUs."""
        return sum(d.wasted_ms for d in self.devices)

    @property
    def alloc_ms(self) -> int:
        """GPU-milliseconds allocated, without shares."""
        return sum(d.alloc_ms for d in self.devices)

    @property
    def coverage(self) -> float:
        """Known share of the allocation of all GPUs without suspension, 0..1."""
        active = self.alloc_ms - sum(d.suspended_ms for d in self.devices)
        return sum(d.known_ms for d in self.devices) / active if active > 0 else 0.0

    @property
    def mean_pct(self) -> float | None:
        """Mean utilization over the known GPU-time, percent."""
        known = sum(d.use.known_ms for d in self.devices)
        return sum(d.use.pct_ms for d in self.devices) / known if known else None
