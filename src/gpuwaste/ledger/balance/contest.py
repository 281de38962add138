"""The contest for free GPUs: those that no run holds and that are kept for none, against all jobs that wait.

A sweep over the changes of both in the order of time. Nodes in the same state are one group, and a group is compared
with a request once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from gpuwaste.ledger.balance.bounded import BoundedKind, ByBlocker, ByKind, Stranded
from gpuwaste.ledger.balance.demand import Demand, Masks, bits_of, request_of
from gpuwaste.ledger.balance.enough_nodes import EnoughNodes
from gpuwaste.ledger.balance.timeline import Free, NodeStretch, NodeTime, blocker
from gpuwaste.ledger.balance.types import STRANDED, BalanceClass, GpuKind, NodeSpan, Run, WaitingRun

_END: Final = 0  # at one instant ends come before beginnings
_BEGIN: Final = 1


class Claim(NamedTuple):
    """The next run to start on a node has waited for it since `begin`; it needs `gpus` GPUs in all."""

    node: str
    begin: int
    until: int
    gpus: int

    @property
    def length_s(self) -> int:
        """How long it has waited in the end."""
        return self.until - self.begin


class Offer(NamedTuple):
    """A stretch of a node with free GPUs."""

    node: str
    stretch: NodeStretch


class Wanted(NamedTuple):
    """A job waits from `since` until `until`, and GPUs are not kept for it."""

    run: WaitingRun
    since: int
    until: int


@dataclass(slots=True)
class _Group:
    """Nodes in the same state: their free GPUs are in the same class."""

    span: NodeSpan
    free: Free
    claim: Claim | None
    masks: Masks
    of: BalanceClass = BalanceClass.FREE
    nodes: set[str] = field(default_factory=set)


_Key = tuple[tuple[object, ...], Free, Claim | None]


class Contest:
    """One sweep; `classes` and `blocked` are the sums that it adds to."""

    def __init__(
        self,
        nodes: Mapping[str, NodeTime],
        classes: ByKind,
        blocked: ByBlocker,
    ) -> None:
        self._facts = nodes
        self._classes = classes
        self._blocked = blocked
        self._demand = Demand()
        self._enough = EnoughNodes(self._demand)
        self._groups: dict[_Key, _Group] = {}
        self._group_of: dict[str, _Key] = {}
        self._offers: dict[str, NodeStretch] = {}
        self._claims: dict[str, Claim] = {}
        self._masks: dict[tuple[object, Free], Masks] = {}
        self._kinds: dict[GpuKind, BoundedKind] = {}
        self._kinds_of: dict[frozenset[str], list[BoundedKind]] = {}
        self._unsettled: dict[GpuKind, BoundedKind] = {}
        self._now = 0

    def sweep(self, offers: Sequence[Offer], wanted: Sequence[Wanted], claims: Sequence[Claim]) -> None:
        """Add the classes of all offers to the sums."""
        for offer in offers:
            kind = offer.stretch.span.kind
            self._kinds.setdefault(kind, BoundedKind(kind, offer.stretch.start))
        for at, changes in groupby(self._changes(offers, wanted, claims), key=itemgetter(0)):
            self._now = at
            self._apply(changes)

    def _changes(
        self, offers: Sequence[Offer], wanted: Sequence[Wanted], claims: Sequence[Claim]
    ) -> list[tuple[int, int, Any]]:
        found: list[tuple[int, int, Any]] = []
        for offer in offers:
            found += ((offer.stretch.start, _BEGIN, offer), (offer.stretch.end, _END, offer))
        for want in wanted:
            found += ((want.since, _BEGIN, want), (want.until, _END, want))
        for claim in claims:
            found += ((claim.begin, _BEGIN, claim), (claim.until, _END, claim))
        return sorted(found, key=itemgetter(0, 1))

    def _apply(self, changes: Iterator[tuple[int, int, Any]]) -> None:
        """Apply the changes of one instant, then count anew what they touch."""
        touched: set[str] = set()
        changed = False
        for _, begins, what in changes:
            if isinstance(what, Wanted):
                changed |= self._want(what.run, 1 if begins else -1)
                continue
            touched.add(what.node)
            table: dict[str, Any] = self._offers if isinstance(what, Offer) else self._claims
            if begins:
                table[what.node] = what.stretch if isinstance(what, Offer) else what
            else:
                table.pop(what.node, None)
        if changed:
            self._compare()
        for name in touched:
            self._regroup(name)
        if changed or self._enough.changed:
            self._enough.changed = False
            for group in self._groups.values():
                self._reclass(group)
        for kind in self._unsettled.values():
            kind.settle(self._now, self._classes, self._blocked)
        self._unsettled.clear()

    def _want(self, run: WaitingRun, change: int) -> bool:
        """Count a job that waits in (1) or out (-1); return whether another request waits now, or one less."""
        for kind in self._kinds_with(run.partitions):
            self._unsettled[kind.kind] = kind
            if run.limited:
                kind.limited += change * run.gpus
            else:
                kind.unlimited += change * run.gpus
        return self._demand.count(self._demand.bit(request_of(run)), change, limited=run.limited)

    def _kinds_with(self, partitions: frozenset[str]) -> list[BoundedKind]:
        found = self._kinds_of.get(partitions)
        if found is None:
            kinds = self._kinds.values()
            found = [each for each in kinds if not partitions.isdisjoint(each.kind.partitions.split(","))]
            self._kinds_of[partitions] = found
        return found

    def _compare(self) -> None:
        """Compare the groups with requests that did not wait before."""
        active = self._demand.active
        for group in self._groups.values():
            if new := active & ~group.masks.known:
                self._demand.compare(group.masks, group.span, group.free, new)
        self._enough.follow((group.masks, len(group.nodes)) for group in self._groups.values())

    def _regroup(self, name: str) -> None:
        """Move a node to the group of its state."""
        stretch, key = self._offers.get(name), self._group_of.get(name)
        new = None if stretch is None else _key(stretch, self._claims.get(name))
        if key == new and (key is None or self._groups[key].of not in STRANDED):
            return
        if key is not None:
            group = self._groups[key]
            group.nodes.discard(name)
            self._enough.count(group.masks, -1)
            self._offer(group, -group.free.gpus)
            self._strand(group, name, joins=False)
            del self._group_of[name]
            if not group.nodes:
                del self._groups[key]
        if new is not None and stretch is not None:
            group = self._group(new, stretch.span)
            group.nodes.add(name)
            self._enough.count(group.masks, 1)
            self._offer(group, group.free.gpus)
            self._strand(group, name, joins=True)
            self._group_of[name] = new

    def _group(self, key: _Key, span: NodeSpan) -> _Group:
        group = self._groups.get(key)
        if group is None:
            masks = self._masks.setdefault(key[:2], Masks())
            group = self._groups[key] = _Group(span, key[1], key[2], masks)
            if new := self._demand.active & ~masks.known:
                self._demand.compare(masks, span, group.free, new)
            group.of = self._class_of(group)
        return group

    def _reclass(self, group: _Group) -> None:
        of = self._class_of(group)
        if of is not group.of:
            gpus = group.free.gpus * len(group.nodes)
            self._offer(group, -gpus)
            for name in group.nodes:
                self._strand(group, name, joins=False)
            group.of = of
            self._offer(group, gpus)
            for name in group.nodes:
                self._strand(group, name, joins=True)

    def _offer(self, group: _Group, gpus: int) -> None:
        kind = self._kinds[group.span.kind]
        kind.offer(group.of, gpus)
        self._unsettled[kind.kind] = kind

    def _class_of(self, group: _Group) -> BalanceClass:  # noqa: PLR0911 one line for each class
        """Return the class of free GPUs: the first cause that a waiting job gives."""
        demand, masks, few = self._demand, group.masks, self._enough
        if not masks.concerned & demand.active:
            return BalanceClass.FREE
        unlimited, fit = demand.unlimited, masks.fit & ~few.fit
        if group.claim is not None and fit & unlimited and self._claimed(group.claim, fit & unlimited):
            return BalanceClass.FREE_PLANNED
        if fit & demand.limited:
            return BalanceClass.FREE_LIMIT
        if unlimited & masks.memory & ~few.memory:
            return BalanceClass.FREE_MEMORY
        if unlimited & masks.cpus & ~few.cpus:
            return BalanceClass.FREE_CPUS
        if unlimited & (masks.gpus | (masks.fit & few.fit)):
            return BalanceClass.FREE_FEW_GPUS
        return BalanceClass.FREE_OTHER_TYPE if unlimited & masks.other_type else BalanceClass.FREE_UNKNOWN

    def _claimed(self, claim: Claim, fitting: int) -> bool:
        """Return whether one of these requests would not end before a larger job starts."""
        requests = (self._demand.requests[number] for number in bits_of(fitting))
        return any(
            claim.gpus > each.total and (each.time_limit_s is None or each.time_limit_s >= claim.length_s)
            for each in requests
        )

    def _strand(self, group: _Group, name: str, *, joins: bool) -> None:
        """Note who is in the way on a node that joins or leaves a group whose GPUs jobs cannot use."""
        if group.of not in STRANDED:
            return
        kind = self._kinds[group.span.kind]
        kind.stale = True
        if joins:
            kind.stranded[name] = Stranded(group.of, group.free.gpus, self._blocker(name, group))
        else:
            kind.stranded.pop(name, None)

    def _blocker(self, name: str, group: _Group) -> Run | None:
        holdings = [held for held in self._facts[name].holdings if held.start <= self._now < held.end]
        found = blocker(group.span, holdings, group.of)
        return None if found is None else found.run


def _key(stretch: NodeStretch, claim: Claim | None) -> _Key:
    span = stretch.span
    return (span.kind, span.gpus, span.cpus, span.memory_b, span.features), stretch.free, claim
