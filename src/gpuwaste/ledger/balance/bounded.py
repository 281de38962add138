"""BoundedKind: the free GPUs of one kind by cause, never more than the waiting jobs request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gpuwaste.ledger.balance.tally import HourTally
from gpuwaste.ledger.balance.types import BY_DEMAND, STRANDED, BalanceClass, GpuKind, Run

ByKind = HourTally[tuple[GpuKind, BalanceClass]]
ByBlocker = HourTally[tuple[BalanceClass, Run, str, GpuKind]]


class Stranded(NamedTuple):
    """Free GPUs of a node that jobs cannot use, and the run that is in the way, None where there is none."""

    of: BalanceClass
    gpus: int
    run: Run | None


class _Counted(NamedTuple):
    """What is counted against a run since a time."""

    of: BalanceClass
    run: Run
    gpus: int
    since: int


@dataclass(slots=True)
class BoundedKind:
    """GPUs by cause as nodes have them (`supply`), and what jobs with and without a limit request in all."""

    kind: GpuKind
    since: int
    supply: dict[BalanceClass, int] = field(default_factory=dict)
    unlimited: int = 0
    limited: int = 0
    stranded: dict[str, Stranded] = field(default_factory=dict)
    stale: bool = False
    """Whether `stranded` has changed."""
    _shown: Mapping[BalanceClass, int] = field(default_factory=dict)
    _counted: dict[str, _Counted] = field(default_factory=dict)

    def offer(self, of: BalanceClass, gpus: int) -> None:
        """Add GPUs to a cause."""
        self.supply[of] = self.supply.get(of, 0) + gpus

    def settle(self, now: int, classes: ByKind, blocked: ByBlocker) -> None:
        """Add what has been true until now to the sums, and bound the causes by the demand from now on."""
        for of, gpus in self._shown.items():
            classes.add((self.kind, of), self.since, now, gpus)
        self.since = now
        before, self._shown = self._shown, self._bounded()
        if self.stale or any(before.get(of) != self._shown.get(of) for of in STRANDED):
            self.stale = False
            self._recount(now, blocked)

    def _bounded(self) -> Mapping[BalanceClass, int]:
        shown: dict[BalanceClass, int] = {}
        supply = self.supply
        left, limited = self.unlimited, min(supply.get(BalanceClass.FREE_LIMIT, 0), self.limited)
        for of in BY_DEMAND:
            if gpus := min(supply.get(of, 0), left):
                shown[of] = gpus
                left -= gpus
        if limited:
            shown[BalanceClass.FREE_LIMIT] = limited
        if unknown := min(supply.get(BalanceClass.FREE_UNKNOWN, 0), left + self.limited - limited):
            shown[BalanceClass.FREE_UNKNOWN] = unknown
        if free := sum(supply.values()) - sum(shown.values()):
            shown[BalanceClass.FREE] = free
        return shown

    def _recount(self, now: int, blocked: ByBlocker) -> None:
        """Count GPUs against the runs that are in the way, from now on; what has not changed is counted on."""
        fresh = dict(self._blocking(now))
        for node, counted in self._counted.items():
            new = fresh.get(node)
            if new is not None and new[:3] == counted[:3]:
                fresh[node] = counted
            else:
                key = counted.of, counted.run, node, self.kind
                blocked.add(key, counted.since, now, counted.gpus)
        self._counted = fresh

    def _blocking(self, now: int) -> Iterator[tuple[str, _Counted]]:
        """Yield node and run for as many GPUs as are shown, nodes in the order of their names."""
        left = {of: self._shown.get(of, 0) for of in STRANDED}
        for node in sorted(self.stranded):
            of, gpus, run = self.stranded[node]
            gpus = min(gpus, left[of])
            left[of] -= gpus
            if gpus and run is not None:
                yield node, _Counted(of, run, gpus, now)
