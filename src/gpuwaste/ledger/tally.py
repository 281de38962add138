"""Tally: sums over devices, GPU-seconds by class."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from gpuwaste.ledger.ledger import DeviceLedger

ENERGY: Final = ("energy_j", "energy_ms", "split_j", "wasted_j", "cpu_energy_ms", "cpu_energy_j")
"""The energy fields; all but the first have their own columns in tables judged and day_sums."""
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
    untouched_ms: int = 0
    idle_run_ms: int = 0
    wasted_ms: int = 0
    pct_ms: int = 0  # percent times milliseconds
    seen_ms: int = 0  # of which pct_ms is known
    energy_j: float | None = None
    energy_ms: int | None = None  # over which it was measured
    split_j: float | None = None  # its part of which idle or not is known
    wasted_j: float | None = None  # the part of that in wasted time
    cpu_energy_ms: int | None = None  # over which cpu_energy_j was measured
    cpu_energy_j: float | None = None  # of the CPUs that the runs used
    unknown: dict[str, int] = field(default_factory=dict)
    exempt: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_own(cls, row: Mapping[str, Any]) -> Self:
        """Return the sums of the own GPUs in a row of table judged or day_sums."""
        return cls(**row["own"], **{name: row[name] for name in ENERGY[1:]})

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
        use = device.use
        active_ms = device.alloc_ms - device.suspended_ms
        self.pct_ms += use.pct_ms if use.told_pct is None else round(use.told_pct * active_ms)
        self.seen_ms += use.known_ms if use.told_pct is None else active_ms
        if device.untouched:
            self.untouched_ms += device.idle_ms
        gpu = use.energy_j, use.energy_ms, use.split_j, device.wasted_j
        self._add_rest(device.unknown, device.exempt, (*gpu, use.cpu_energy_ms, use.cpu_energy_j))

    @classmethod
    def sum(cls, tallies: Iterable["Tally"]) -> Self:
        """Add up tallies."""
        total = cls()
        for tally in tallies:
            total.add_tally(tally)
        return total

    def add_tally(self, other: "Tally") -> None:
        """Add another tally."""
        for name in _AMOUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self._add_rest(other.unknown, other.exempt, tuple(getattr(other, name) for name in ENERGY))

    def _add_rest(
        self, unknown: Mapping[str, int], exempt: Mapping[str, int], energy: tuple[float | None, ...]
    ) -> None:
        for mine, theirs in ((self.unknown, unknown), (self.exempt, exempt)):
            for reason, ms in theirs.items():
                mine[reason] = mine.get(reason, 0) + ms
        for name, amount in zip(ENERGY, energy, strict=True):
            if amount is not None:
                setattr(self, name, (getattr(self, name) or 0) + amount)

    def to_row(self) -> dict[str, Any]:
        """Return the fields as columns of table judged."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def known_ms(self) -> int:
        """GPU-milliseconds with a utilization."""
        return self.idle_ms + self.low_ms + self.moderate_ms + self.high_ms

    @property
    def wasted_energy_share(self) -> float | None:
        """The wasted share, 0..1, of the energy for which idle or not is known; None: of none."""
        return None if self.wasted_j is None or not self.split_j else round(min(1.0, self.wasted_j / self.split_j), 4)

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
            **self.energy_json(),
        }

    def energy_json(self) -> dict[str, float | None]:
        """Return the energy fields."""
        return {
            "energy_j": self.energy_j,
            "energy_measured_s": None if self.energy_ms is None else seconds(self.energy_ms),
            "wasted_energy_j": self.wasted_j,
            "wasted_energy_share": self.wasted_energy_share,
            "cpu_energy_j": self.cpu_energy_j,
            "cpu_energy_measured_s": None if self.cpu_energy_ms is None else seconds(self.cpu_energy_ms),
        }


_AMOUNTS: Final = tuple(f.name for f in fields(Tally) if f.type is int)
