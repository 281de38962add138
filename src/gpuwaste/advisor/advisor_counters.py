"""The advisor's counters, updated on the loop's thread; /metrics reads them from another."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

BUCKETS_US: Final = (50, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000, 10_000, 20_000)
VIAS: Final = ("c", "lua")
PLUGIN: Final = ("asked", "answered", "missed", "refused", "skipped", "opened", "killed", "stale", "oversize")
_LARGEST: Final = 1 << 53
_LATE: Final = 256  # requests that may overtake each other: far above the queue's length


@dataclass(slots=True)
class Counters:
    """Totals since the start.

    `asked` counts requests by outcome, `verdicts` by (action, would_be, mode, held), `shadow` verdicts by the outcome
    of scoring other models as well. `plugin` has the largest totals that the plugins have reported, by (via, name):
    they count since slurmctld's start. A slightly smaller total is from a request that arrived late; much smaller ones
    are from after a restart, and replace the old ones.
    """

    asked: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    shadow: Counter[str] = field(default_factory=Counter)
    plugin: dict[tuple[str, str], int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_US) + 1))
    sum_us: int = 0

    def answered(self, latency_us: int) -> None:
        """Count an answer with its latency, measured from the connection on."""
        self.buckets[bisect_left(BUCKETS_US, latency_us)] += 1
        self.sum_us += latency_us

    def reported(self, via: object, totals: object) -> None:
        """Take a plugin's totals; values that are not numbers are ignored."""
        if not isinstance(totals, Mapping) or via not in VIAS:
            return
        found = {(str(via), name): value for name in PLUGIN if _is_total(value := totals.get(name))}
        asked = (str(via), "asked")
        if found.get(asked, _LARGEST) + _LATE < self.plugin.get(asked, 0):  # slurmctld was restarted: from zero again
            self.plugin.update(found)
        for key, value in found.items():
            self.plugin[key] = max(value, self.plugin.get(key, 0))


def _is_total(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _LARGEST
