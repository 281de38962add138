"""RunSums: GPU-time and counts of some runs, by user, account, partition and cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from gpuwaste.ledger.judged import JudgedRun
from gpuwaste.ledger.ledger import Level
from gpuwaste.ledger.tally import Tally, seconds

_COUNTS: Final = (
    "jobs", "running", "beyond", "conflicts", "under_jobs", "under_devices", "under_ms", "asked_jobs", "asked_devices",
)  # fmt: skip
Group = tuple[str, str, str, str]
"""User, account, partition and cluster."""


@dataclass(slots=True)
class RunSums:
    """Sums over some runs: GPU-time of their own and shared GPUs, and counts."""

    own: Tally = field(default_factory=Tally)
    shared: Tally = field(default_factory=Tally)
    jobs: int = 0
    running: int = 0
    beyond: int = 0
    conflicts: int = 0
    under_jobs: int = 0
    under_devices: int = 0
    under_ms: int = 0
    asked_jobs: int = 0
    asked_devices: int = 0
    level_devices: list[int] = field(default_factory=lambda: [0] * len(Level))
    level_ms: list[int] = field(default_factory=lambda: [0] * len(Level))

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the counts of a row of query judged_counts or day_totals, without GPU-time."""
        return cls(**{name: row[name] for name in (*_COUNTS, "level_devices", "level_ms") if name in row})

    @classmethod
    def of(cls, sums: Iterable["RunSums"]) -> Self:
        """Add up sums."""
        total = cls()
        for other in sums:
            total.own.add_tally(other.own)
            total.shared.add_tally(other.shared)
            for name in _COUNTS:
                setattr(total, name, getattr(total, name) + getattr(other, name))
            for mine, theirs in ((total.level_devices, other.level_devices), (total.level_ms, other.level_ms)):
                mine[:] = map(sum, zip(mine, theirs, strict=True))
        return total

    def count(self, run: JudgedRun) -> None:
        """Count a run and its devices (query judged_counts)."""
        self.jobs += 1
        self.running += run.running
        self.beyond += run.beyond > 0
        self.conflicts += run.conflict
        self.under_jobs += run.under_devices > 0
        self.under_devices += run.under_devices
        self.under_ms += run.under_ms
        self.asked_jobs += run.asked_devices > 0
        self.asked_devices += run.asked_devices
        for mine, theirs in ((self.level_devices, run.level_devices), (self.level_ms, run.level_ms)):
            mine[:] = map(sum, zip(mine, theirs, strict=True))

    def levels_json(self) -> dict[str, dict[str, Any]]:
        """Return devices and GPU-seconds by the level of each device's mean."""
        found = zip(Level, self.level_devices, self.level_ms, strict=True)
        return {str(level): {"devices": devices, "gpu_s": seconds(ms)} for level, devices, ms in found}

    def under_used_json(self) -> dict[str, Any]:
        """Return how many jobs have an under-used device, these devices and their time, and how many were judged."""
        return {
            "jobs": self.under_jobs,
            "devices": self.under_devices,
            "gpu_s": seconds(self.under_ms),
            "judged_jobs": self.asked_jobs,
            "judged_devices": self.asked_devices,
        }


def group_of(row: Mapping[str, Any]) -> Group:
    """Return the group that a row is of."""
    return row["user"], row["account"], row["partition"], row["cluster"]


def add_reasons(sums: Mapping[Group, RunSums], rows: Iterable[Mapping[str, Any]]) -> None:
    """Add unknown and exempt time by reason, as query judged_reasons has it."""
    for row in rows:
        tally = getattr(sums[group_of(row)], row["of"])
        getattr(tally, row["what"])[row["reason"]] = row["ms"]


def added(sums: dict[Group, RunSums], more: dict[Group, RunSums]) -> dict[Group, RunSums]:
    """Return the sums of both, group by group."""
    both = {group: RunSums.of((sums[group], more[group])) for group in sums.keys() & more.keys()}
    return sums | more | both
