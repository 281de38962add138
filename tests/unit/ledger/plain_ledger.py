"""The ledger's definition once more, one device after the other: what the SQL of waste/queries is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.ledger import DeviceUse, LedgerSettings
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.formats.hostlist import expand

CUT_ORDER = ("idle", "suspended", "low", "moderate", "high")


@dataclass
class PlainDevice:
    """One GPU, judged."""

    use: DeviceUse
    alloc_ms: int
    parts: dict[str, int]
    unknown: dict[str, int] = field(default_factory=dict)
    pending_ms: int = 0
    over_ms: int = 0

    @property
    def untouched(self) -> bool:
        return not self.use.proc_seen and self.use.known_ms > 0 and self.use.idle_ms == self.use.known_ms

    @property
    def idle_run_ms(self) -> int:
        return min(self.use.idle_run_ms, self.parts["idle"])

    @property
    def wasted_ms(self) -> int:
        return self.parts["idle"] if self.untouched else self.idle_run_ms

    @property
    def cpu_energy_ms(self) -> int | None:
        """The time over which the energy of CPUs was measured, within the allocation."""
        return None if self.use.cpu_energy_ms is None else min(self.use.cpu_energy_ms, self.alloc_ms)

    @property
    def energy_ms(self) -> int | None:
        return None if self.use.energy_ms is None else min(self.use.energy_ms, self.alloc_ms)

    @property
    def wasted_j(self) -> float | None:
        if self.use.idle_energy_j is None or not self.wasted_ms:
            return None if self.use.idle_energy_j is None else 0.0
        return self.use.idle_energy_j / self.use.idle_ms * self.wasted_ms

    @property
    def known_ms(self) -> int:
        return sum(self.parts.values()) - self.parts["suspended"]


@dataclass
class Span:
    """Accounting's view of a run."""

    job: JobRecord
    begin_ms: int
    until_ms: int
    now_ms: int
    suspended_ms: int


def judge(
    job: JobRecord, uses: Sequence[DeviceUse], settings: LedgerSettings, now_s: int, window: tuple[int, int | None]
) -> tuple[list[PlainDevice], list[PlainDevice], int, Span]:
    """Return the run's own and shared devices, how many GPUs are beyond accounting's, and the span."""
    from_s, to_s = window
    assert job.start is not None
    begin_ms = max(job.start, from_s) * 1000
    end_s = now_s if job.end is None else job.end
    until_ms = max(begin_ms, (end_s if to_s is None else min(end_s, to_s)) * 1000)
    whole = begin_ms == job.start * 1000 and (to_s is None or end_s <= to_s)
    span = Span(job, begin_ms, until_ms, now_s * 1000, job.suspended_s * 1000 if whole else 0)
    uses = _of_its_nodes(job, uses)
    own = sorted((use for use in uses if use.share >= 1), key=_order)
    beyond = 0 if job.gpus is None else max(0, len(own) - job.gpus)
    own = own[: job.gpus] + [DeviceUse() for _ in range((job.gpus or 0) - len(own))]
    own.sort(key=lambda use: (not use.gpu_uuid, use.node, use.gpu_uuid))
    shared = sorted((use for use in uses if use.share < 1), key=lambda use: (use.node, use.gpu_uuid))
    judged = [[_device(use, span, settings) for use in some] for some in (own, shared)]
    return judged[0], judged[1], beyond, span


def _order(use: DeviceUse) -> Any:
    missing = use.gpu_uuid.startswith("missing:")
    return missing, -use.known_ms, use.node, use.gpu_uuid


def _of_its_nodes(job: JobRecord, uses: Sequence[DeviceUse]) -> Sequence[DeviceUse]:
    if all(use.node == job.nodes for use in uses):
        return uses
    try:
        nodes = frozenset(expand(job.nodes))
    except ParseError:
        return uses
    return [use for use in uses if use.node in nodes] if nodes else uses


def _device(use: DeviceUse, span: Span, settings: LedgerSettings) -> PlainDevice:
    moderate = use.known_ms - use.idle_ms - use.low_ms - use.high_ms
    parts = {"idle": use.idle_ms, "suspended": use.suspended_ms, "low": use.low_ms}
    device = PlainDevice(use, span.until_ms - span.begin_ms, parts | {"moderate": moderate, "high": use.high_ms})
    for reason, ms in zip(use.unknown_reason, use.unknown_ms, strict=True):
        if ms:
            device.unknown[reason] = device.unknown.get(reason, 0) + ms
    seen_ms = use.known_ms + use.suspended_ms + sum(device.unknown.values())
    if seen_ms > device.alloc_ms:
        _cut(device, seen_ms - device.alloc_ms)
    elif seen_ms < device.alloc_ms:
        _fill(device, device.alloc_ms - seen_ms, span, settings)
    return device


def _cut(device: PlainDevice, excess_ms: int) -> None:
    device.over_ms = left = excess_ms
    bags = [(device.parts, "idle"), *((device.unknown, reason) for reason in device.unknown)]
    for bag, name in [*bags, *((device.parts, name) for name in CUT_ORDER[1:])]:
        taken = min(left, bag[name])
        bag[name] -= taken
        left -= taken


def _fill(device: PlainDevice, rest_ms: int, span: Span, settings: LedgerSettings) -> None:
    use, parts = device.use, device.parts
    suspended = min(rest_ms, max(0, span.suspended_ms - parts["suspended"]))
    parts["suspended"] += suspended
    rest_ms -= suspended
    since_ms = max(span.now_ms - round(settings.pending_s * 1000), use.t1_ms, span.begin_ms)
    if not (use.final and span.job.end is not None):
        device.pending_ms = min(rest_ms, max(0, span.until_ms - since_ms))
    if rest_ms > device.pending_ms:
        reason = "unreported" if use.gpu_uuid else "no_agent"
        device.unknown[reason] = device.unknown.get(reason, 0) + rest_ms - device.pending_ms


def level(device: PlainDevice, settings: LedgerSettings) -> str:
    """Return the level of a device's mean."""
    mean = device.use.mean_pct
    if mean is None:
        return "unknown"
    if mean == 0:
        return "none"
    if mean < settings.low_below_pct:
        return "low"
    return "high" if mean > settings.high_above_pct else "moderate"


def under_used(device: PlainDevice, job: JobRecord, settings: LedgerSettings) -> bool | None:
    """Apply the rule of under-use."""
    active_ms = device.alloc_ms - device.parts["suspended"]
    mean = device.use.mean_pct
    if job.state != "COMPLETED" or active_ms <= settings.underused_min_s * 1000 or mean is None:
        return None
    return None if device.known_ms / active_ms < settings.min_coverage else mean < settings.underused_below_pct


def exempt(device: PlainDevice, job: JobRecord, settings: LedgerSettings) -> dict[str, int]:
    """Return the part of the waste that has a good reason."""
    ratio = device.use.memory_ratio
    if not device.wasted_ms:
        return {}
    if device.use.proc_seen and ratio is not None and ratio >= settings.memory_resident_ratio:
        return {"memory_resident": device.wasted_ms}
    grace_ms = round(settings.interactive_grace_s * 1000) if job.interactive else 0
    return {"interactive_grace": min(device.wasted_ms, grace_ms)} if grace_ms else {}


def due_coverage(device: PlainDevice, job: JobRecord) -> float:
    """Return the known share of what is due."""
    due_ms = device.alloc_ms - device.parts["suspended"] - (device.pending_ms if job.end is None else 0)
    return device.known_ms / due_ms if due_ms > 0 else 0.0
