"""Sums over devices: GPU-seconds by class, by level, and the under-used rule's count."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from gpuwaste.waste.ledger import DeviceLedger, JobLedger, Level

_CLASSES = ("idle", "low", "moderate", "high", "suspended", "pending")


def seconds(ms: int) -> float:
    """Return milliseconds as seconds with three decimals, as documents carry them."""
    return ms / 1000


@dataclass(slots=True)
class Tally:
    """GPU-milliseconds of any number of devices; idle + ... + pending + unknown = alloc."""

    devices: int = 0
    alloc_ms: int = 0
    idle_ms: int = 0
    low_ms: int = 0
    moderate_ms: int = 0
    high_ms: int = 0
    suspended_ms: int = 0
    pending_ms: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    untouched_ms: int = 0
    idle_run_ms: int = 0
    wasted_ms: int = 0
    exempt: dict[str, int] = field(default_factory=dict)
    pct_ms: int = 0
    seen_ms: int = 0
    energy_j: float | None = None

    @classmethod
    def of(cls, devices: Iterable[DeviceLedger]) -> Self:
        """Add up some devices."""
        tally = cls()
        for device in devices:
            tally.add(device)
        return tally

    def add(self, device: DeviceLedger) -> None:
        """Add one device."""
        self.devices += 1
        self.alloc_ms += device.alloc_ms
        self.idle_ms += device.idle_ms
        self.low_ms += device.low_ms
        self.moderate_ms += device.moderate_ms
        self.high_ms += device.high_ms
        self.suspended_ms += device.suspended_ms
        self.pending_ms += device.pending_ms
        self.idle_run_ms += device.idle_run_ms
        self.wasted_ms += device.wasted_ms
        self.pct_ms += device.use.pct_ms
        self.seen_ms += device.use.known_ms
        if device.untouched:
            self.untouched_ms += device.idle_ms
        for reason, ms in device.unknown.items():
            self.unknown[reason] = self.unknown.get(reason, 0) + ms
        for reason, ms in device.exempt.items():
            self.exempt[reason] = self.exempt.get(reason, 0) + ms
        if device.use.energy_j is not None:
            self.energy_j = (self.energy_j or 0.0) + device.use.energy_j

    @property
    def known_ms(self) -> int:
        """GPU-milliseconds with a utilization."""
        return self.idle_ms + self.low_ms + self.moderate_ms + self.high_ms

    def to_json(self) -> dict[str, Any]:
        """Return seconds by class, coverage (0..1, of what is not pending) and mean utilization (percent)."""
        active_ms = self.alloc_ms - self.suspended_ms - self.pending_ms
        return {
            "devices": self.devices,
            "gpu_s": seconds(self.alloc_ms),
            **{f"{name}_s": seconds(getattr(self, f"{name}_ms")) for name in _CLASSES},
            "unknown_s": seconds(sum(self.unknown.values())),
            "unknown_by_reason_s": {reason: seconds(ms) for reason, ms in sorted(self.unknown.items())},
            "untouched_s": seconds(self.untouched_ms),
            "idle_run_s": seconds(self.idle_run_ms),
            "wasted_s": seconds(self.wasted_ms),
            "exempt_s": seconds(sum(self.exempt.values())),
            "exempt_by_reason_s": {reason: seconds(ms) for reason, ms in sorted(self.exempt.items())},
            "coverage": round(self.known_ms / active_ms, 4) if active_ms > 0 else None,
            "mean_util_pct": round(self.pct_ms / self.seen_ms, 2) if self.seen_ms else None,
            "energy_j": self.energy_j,
        }


def levels_json(jobs: Iterable[JobLedger]) -> dict[str, dict[str, Any]]:
    """Return the thesis' view: devices and GPU-seconds by the level of each device's mean."""
    devices = dict.fromkeys(Level, 0)
    alloc_ms = dict.fromkeys(Level, 0)
    for job in jobs:
        for device in job.devices:
            devices[device.level] += 1
            alloc_ms[device.level] += device.alloc_ms
    return {str(level): {"devices": devices[level], "gpu_s": seconds(alloc_ms[level])} for level in Level}


def under_used_json(jobs: Iterable[JobLedger]) -> dict[str, Any]:
    """Return how many jobs have an under-used device, these devices and their GPU-seconds, and how many were judged."""
    found = {"jobs": 0, "devices": 0, "gpu_s": 0.0, "judged_jobs": 0, "judged_devices": 0}
    for job in jobs:
        under = [d for d in job.devices if d.under_used]
        judged = sum(d.under_used is not None for d in job.devices)
        found["jobs"] += bool(under)
        found["devices"] += len(under)
        found["gpu_s"] += sum(d.alloc_ms for d in under) / 1000
        found["judged_jobs"] += bool(judged)
        found["judged_devices"] += judged
    return found
