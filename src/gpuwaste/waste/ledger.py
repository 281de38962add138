"""The ledger: each allocated GPU-millisecond is exactly one of the classes (CONTRACTS.md, "Ledger").

Accounting says how long each GPU was allocated; the hours say what was seen. What accounting has and the hours lack is
unknown, or pending while it may still be on its way. All durations are whole milliseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.job import JobRecord
from gpuwaste.core.sample import UnknownReason
from gpuwaste.slurm.hostlist import expand
from gpuwaste.waste.gpu_bound import bounded
from gpuwaste.waste.settings import LedgerSettings

COMPLETED: Final = "COMPLETED"
# Where a node saw more than accounting allows (epilog, clocks apart), the excess is cut in the job's favour.
_CUT_ORDER: Final = ("idle", "suspended", "low", "moderate", "high")


VERSION: Final = 1
"""Of these rules: raise it where the same hours and thresholds give another ledger; runs are judged anew then."""


class Level(StrEnum):
    """The thesis' level of a device: that of its mean utilization over the run."""

    NONE = "none"
    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class DeviceUse:
    """What the hub's hours say of one GPU in one run, added up; None is "not known"."""

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
    full_ms: int = 0  # at 95 % and more
    pct_ms: int = 0  # percent times milliseconds: the mean's numerator
    idle_run_ms: int = 0
    suspended_ms: int = 0
    proc_seen: bool = False
    mem_max_b: int | None = None
    mem_total_b: int | None = None
    energy_j: float | None = None
    last_active_ms: int | None = None
    power_w_at_full: float | None = None
    power_limit_w: float | None = None
    sm_ratio_at_full: float | None = None
    hang_ms: int = 0  # at 95 % and more with almost no power or almost no SM busy
    cpu_s: float | None = None  # of the whole job on this node, the same in each of its GPUs' rows
    cpu_known_ms: int = 0  # the known milliseconds of the rows that have cpu_s
    host_mem_max_b: int | None = None
    map_source: str = "none"
    confidence: str = "none"
    whole_known_ms: int | None = None  # of the whole run, where only the part of it in a window is told
    whole_active: bool | None = None
    idle_before_ms: int = 0  # before that window
    idle_run_before_ms: int = 0
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def order_ms(self) -> int:
        """Known time of the whole run: which GPUs count does not depend on the window."""
        return self.known_ms if self.whole_known_ms is None else self.whole_known_ms

    @property
    def never_used(self) -> bool:
        """Whether no process was ever seen on the GPU, and all that is known of the whole run is idle."""
        active = self.idle_ms < self.known_ms if self.whole_active is None else self.whole_active
        return not self.proc_seen and self.order_ms > 0 and not active

    @property
    def mean_pct(self) -> float | None:
        """Mean utilization over the known time, percent."""
        return self.pct_ms / self.known_ms if self.known_ms else None

    @property
    def memory_ratio(self) -> float | None:
        """Share of the GPU's memory that was used at most, 0..1."""
        if self.mem_max_b is None or not self.mem_total_b:
            return None
        return self.mem_max_b / self.mem_total_b


@dataclass(slots=True)
class DeviceLedger:
    """One GPU of one run, judged. idle + low + moderate + high + suspended + pending + unknown = alloc."""

    use: DeviceUse
    alloc_ms: int
    idle_ms: int
    low_ms: int
    moderate_ms: int
    high_ms: int
    suspended_ms: int
    pending_ms: int
    unknown: dict[str, int]
    idle_run_ms: int
    over_ms: int  # seen by the node beyond accounting's interval, and cut
    untouched: bool
    level: Level
    known_ms: int  # with a utilization, inside the allocation
    due_coverage: float  # known share, 0..1, of what is due: what a running job has yet to send is no gap
    under_used: bool | None = None  # None: the rule does not apply, or too little is known
    exempt: dict[str, int] = field(default_factory=dict)  # part of wasted_ms, by reason

    @property
    def unknown_ms(self) -> int:
        """Milliseconds of which nothing is known, whatever the reason."""
        return sum(self.unknown.values())

    @property
    def wasted_ms(self) -> int:
        """The whole idle time of an untouched GPU, else the runs of a minute and more."""
        return self.idle_ms if self.untouched else self.idle_run_ms

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
    """One run of one job: its record, its own GPUs, its shares of GPUs, and what follows for the whole."""

    job: JobRecord
    begin_ms: int
    until_ms: int  # accounting's end, or now
    ran_ms: int  # wall time without suspension
    running: bool  # the run has not ended: what is said of it is provisional
    due_coverage: float  # that of the own GPU of which the least is known; 1 without any
    devices: tuple[DeviceLedger, ...]
    beyond: int = 0  # GPUs that agents named for the run and accounting did not give it: they do not count
    shared: tuple[DeviceLedger, ...] = ()
    whole_node: bool = False

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
        """Known share of the whole allocation without suspension, 0..1."""
        active = self.alloc_ms - sum(d.suspended_ms for d in self.devices)
        return sum(d.known_ms for d in self.devices) / active if active > 0 else 0.0

    @property
    def mean_pct(self) -> float | None:
        """Mean utilization over the known GPU-time, percent."""
        known = sum(d.use.known_ms for d in self.devices)
        return sum(d.use.pct_ms for d in self.devices) / known if known else None


def judge_job(
    job: JobRecord,
    uses: Sequence[DeviceUse],
    settings: LedgerSettings,
    now_s: int,
    *,
    whole_node: bool = False,
    from_s: int = 0,
    to_s: int | None = None,
) -> JobLedger:
    """Judge one run that has started from what was seen of it in [from_s, to_s), UTC seconds.

    GPUs that accounting has and no agent reported stand as devices without a name. GPUs beyond accounting's count do
    not count, nor does what a node says of a run that was never there: one node cannot speak for another's jobs.
    """
    uses = _of_its_nodes(job, uses)
    begin_ms = max(job.start or 0, from_s) * 1000
    end_s = now_s if job.end is None else job.end
    until_ms = max(begin_ms, (end_s if to_s is None else min(end_s, to_s)) * 1000)
    whole = begin_ms == (job.start or 0) * 1000 and (to_s is None or end_s <= to_s)
    span = Span(job, begin_ms, until_ms, now_s * 1000, job.suspended_s * 1000 if whole else 0)
    own, beyond = bounded((u for u in uses if u.share >= 1.0), job.gpus)
    own += [DeviceUse() for _ in range((job.gpus or 0) - len(own))]
    devices = [judge_device(u, span, settings) for u in own]
    devices.sort(key=lambda d: (not d.use.gpu_uuid, d.use.node, d.use.gpu_uuid))
    shared = sorted((u for u in uses if u.share < 1.0), key=lambda u: (u.node, u.gpu_uuid))
    return JobLedger(
        job=job,
        begin_ms=begin_ms,
        until_ms=until_ms,
        ran_ms=max(0, until_ms - begin_ms - job.suspended_s * 1000),
        running=job.end is None,
        due_coverage=min((d.due_coverage for d in devices), default=1.0),
        devices=tuple(devices),
        beyond=beyond,
        shared=tuple(judge_device(u, span, settings) for u in shared),
        whole_node=whole_node,
    )


@dataclass(frozen=True, slots=True)
class Span:
    """Accounting's view of a run, milliseconds."""

    job: JobRecord
    begin_ms: int
    until_ms: int
    now_ms: int
    suspended_ms: int


def _of_its_nodes(job: JobRecord, uses: Sequence[DeviceUse]) -> Sequence[DeviceUse]:
    """Return what the run's own nodes say, as accounting has them; all, where accounting does not tell any."""
    if all(use.node == job.nodes for use in uses):
        return uses
    try:
        nodes = frozenset(expand(job.nodes))
    except ParseError:
        return uses
    return [use for use in uses if use.node in nodes] if nodes else uses


def judge_device(use: DeviceUse, span: "Span", settings: LedgerSettings) -> DeviceLedger:
    """Judge one GPU of a run."""
    seen_ms = use.known_ms + sum(use.unknown.values()) + use.suspended_ms
    alloc_ms = span.until_ms - span.begin_ms
    parts = {
        "idle": use.idle_ms,
        "suspended": use.suspended_ms,
        "low": use.low_ms,
        "moderate": use.known_ms - use.idle_ms - use.low_ms - use.high_ms,
        "high": use.high_ms,
    }
    unknown = {reason: ms for reason, ms in use.unknown.items() if ms > 0} if use.unknown else {}
    over_ms = _cut(parts, unknown, seen_ms - alloc_ms) if seen_ms > alloc_ms else 0
    pending = _fill(parts, unknown, use, span, settings) if seen_ms < alloc_ms else 0
    known_ms = parts["idle"] + parts["low"] + parts["moderate"] + parts["high"]
    due_ms = alloc_ms - parts["suspended"] - (pending if span.job.end is None else 0)
    device = DeviceLedger(
        use=use,
        alloc_ms=alloc_ms,
        idle_ms=parts["idle"],
        low_ms=parts["low"],
        moderate_ms=parts["moderate"],
        high_ms=parts["high"],
        suspended_ms=parts["suspended"],
        pending_ms=pending,
        unknown=unknown,
        idle_run_ms=min(use.idle_run_ms, parts["idle"]),
        over_ms=over_ms,
        untouched=use.never_used,
        level=level_of(use.mean_pct, settings),
        known_ms=known_ms,
        due_coverage=known_ms / due_ms if due_ms > 0 else 0.0,
    )
    device.under_used = _under_used(device, span, settings)
    device.exempt = _exempt(device, span.job, settings)
    return device


def level_of(mean_pct: float | None, settings: LedgerSettings) -> Level:
    """Return the thesis' level of a mean utilization: 0, below 33, 33 to 66, above 66 percent."""
    if mean_pct is None:
        return Level.UNKNOWN
    if mean_pct == 0:
        return Level.NONE
    if mean_pct < settings.low_below_pct:
        return Level.LOW
    return Level.HIGH if mean_pct > settings.high_above_pct else Level.MODERATE


def _cut(parts: dict[str, int], unknown: dict[str, int], excess_ms: int) -> int:
    """Take `excess_ms` out of the classes, idle first and unknown next; return what was taken."""
    left = excess_ms
    for bag, name in [(parts, "idle"), *((unknown, r) for r in list(unknown)), *((parts, n) for n in _CUT_ORDER[1:])]:
        taken = min(left, bag[name])
        bag[name] -= taken
        left -= taken
    return excess_ms - left


def _fill(parts: dict[str, int], unknown: dict[str, int], use: DeviceUse, span: Span, settings: LedgerSettings) -> int:
    """Say what the time is that no hour tells: suspended or unknown; return what of it is pending."""
    rest = span.until_ms - span.begin_ms - sum(parts.values()) - sum(unknown.values())
    suspended = min(rest, max(0, span.suspended_ms - parts["suspended"]))
    parts["suspended"] += suspended
    rest -= suspended
    pending = _pending_ms(use, span, settings, rest)
    if rest > pending:
        reason = UnknownReason.UNREPORTED if use.gpu_uuid else UnknownReason.NO_AGENT
        unknown[reason] = unknown.get(reason, 0) + rest - pending
    return pending


def _pending_ms(use: DeviceUse, span: Span, settings: LedgerSettings, rest_ms: int) -> int:
    """Return how much of the unreported time may still be on its way from the node."""
    if use.final and span.job.end is not None:
        return 0
    since_ms = max(span.now_ms - round(settings.pending_s * 1000), use.t1_ms, span.begin_ms)
    return min(rest_ms, max(0, span.until_ms - since_ms))


def _under_used(device: DeviceLedger, span: Span, settings: LedgerSettings) -> bool | None:
    """Apply the thesis' rule; None where it does not apply or too little is known."""
    ran_ms = span.until_ms - span.begin_ms - device.suspended_ms
    mean = device.mean_pct
    if span.job.state != COMPLETED or ran_ms <= settings.underused_min_s * 1000 or mean is None:
        return None
    if device.coverage < settings.min_coverage:
        return None
    return mean < settings.underused_below_pct


def _exempt(device: DeviceLedger, job: JobRecord, settings: LedgerSettings) -> dict[str, int]:
    """Return the part of the waste that has a good reason, by reason; it stays in the waste."""
    if not device.wasted_ms:
        return {}
    ratio = device.use.memory_ratio
    if device.use.proc_seen and ratio is not None and ratio >= settings.memory_resident_ratio:
        return {"memory_resident": device.wasted_ms}
    if job.interactive:
        used_ms = device.use.idle_before_ms if device.untouched else device.use.idle_run_before_ms
        grace_ms = max(0, round(settings.interactive_grace_s * 1000) - used_ms)
        return {"interactive_grace": min(device.wasted_ms, grace_ms)} if grace_ms else {}
    return {}
