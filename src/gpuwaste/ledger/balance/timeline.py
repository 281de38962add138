"""The time of one node as stretches in which nothing changes: its configuration, what runs hold, what is free."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from gpuwaste.ledger.balance.types import CLOSING, BalanceClass, Closure, Holding, NodeSpan, Run


class Free(NamedTuple):
    """What is free on a node, never less than nothing: a job that requests no memory needs none."""

    gpus: int
    cpus: int
    memory_b: int


class KeptForRun(NamedTuple):
    """What is kept on a node for a run that starts at `start`, and the class of its GPUs."""

    since: int
    until: int
    start: int
    holding: Holding
    of: BalanceClass


class NodeStretch(NamedTuple):
    """A part of a node's time; `free` is what no run holds and is kept for none.

    `closed` is the class of the free GPUs where the node takes no job of everybody's. `kept` are GPUs by class, `over`
    GPUs that runs hold beyond those of the node, `estimated` of the allocated ones.
    """

    start: int
    end: int
    span: NodeSpan
    closed: BalanceClass | None
    allocated: int
    estimated: int
    over: int
    kept: tuple[tuple[BalanceClass, int], ...]
    free: Free


@dataclass(slots=True)
class NodeTime:
    """All that is known of one node."""

    spans: list[NodeSpan] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)
    holdings: list[Holding] = field(default_factory=list)
    kept: list[KeptForRun] = field(default_factory=list)


@dataclass(slots=True)
class _State:
    """The state of a node at one time."""

    span: NodeSpan | None = None
    gpus: int = 0
    cpus: int = 0
    memory_b: int = 0
    estimated: int = 0
    runs: int = 0
    states_known: bool = False
    closures: Counter[BalanceClass] = field(default_factory=Counter)
    kept: dict[tuple[int, tuple[int, int]], KeptForRun] = field(default_factory=dict)

    def apply(self, what: Any, sign: int) -> None:
        """Apply the beginning (1) or the end (-1) of something."""
        if type(what) is Holding:  # nearly all of them
            self.gpus += sign * what.gpus
            self.cpus += sign * what.cpus
            self.memory_b += sign * what.memory_b
            self.estimated += sign * what.gpus * what.estimated
            self.runs += sign
        elif type(what) is KeptForRun:
            key = what.start, what.holding.run
            if sign > 0:
                self.kept[key] = what
            elif self.kept.get(key) is what:
                del self.kept[key]
        elif type(what) is Closure:
            self.closures[what.reason] += sign
        elif type(what) is NodeSpan:
            self.span = what if sign > 0 else None
        else:
            self.states_known = True

    def stretch(self, start: int, end: int) -> NodeStretch | None:
        """Return the stretch with this state; None while the node is not part of the machine."""
        span = self.span
        if span is None:
            return None
        allocated = min(span.gpus, self.gpus)
        cpus, memory_b = max(0, span.cpus - self.cpus), max(0, span.memory_b - self.memory_b)
        free = Free(span.gpus - allocated, cpus, memory_b)
        kept: tuple[tuple[BalanceClass, int], ...] = ()
        if self.kept:
            kept, free = self._keep(free)
        estimated, over = min(self.estimated, allocated), self.gpus - allocated
        return NodeStretch(start, end, span, self._closed(), allocated, estimated, over, kept, free)

    def _keep(self, free: Free) -> tuple[tuple[tuple[BalanceClass, int], ...], Free]:
        found = []
        for key in sorted(self.kept):
            kept = self.kept[key]
            gpus = min(kept.holding.gpus, free.gpus)
            found.append((kept.of, gpus))
            cpus, memory_b = free.cpus - kept.holding.cpus, free.memory_b - kept.holding.memory_b
            free = Free(free.gpus - gpus, max(0, cpus), max(0, memory_b))
        return tuple(found), free

    def _closed(self) -> BalanceClass | None:
        """Return why it takes no job. Where states are not known it is known to be up while it has a run."""
        if self.closures:
            found = next((reason for reason in CLOSING if self.closures[reason] > 0), None)
            if found is not None:
                return found
        return None if self.states_known or self.runs else BalanceClass.NOT_KNOWN


def stretches_of(node: NodeTime, start: int, end: int, states_from: int) -> list[NodeStretch]:
    """Return the stretches of a node from `start` to before `end`, in order."""
    changes = list(_changes(node, start, end))
    if states_from < end:
        changes.append((max(start, states_from), 0, None))
    changes.sort(key=itemgetter(0, 1))
    state = _State()
    found = []
    now = start
    for at, sign, what in changes:
        if at > now:
            stretch = state.stretch(now, at)
            if stretch is not None:
                found.append(stretch)
            now = at
        state.apply(what, sign)
    last = state.stretch(now, end) if now < end else None
    return found if last is None else [*found, last]


def _changes(node: NodeTime, start: int, end: int) -> Iterator[tuple[int, int, Any]]:
    """Yield when something begins (1) or ends (-1); what lasts longer is cut at `start` and has no end."""
    for begin, until, what in _spans(node):
        if begin < end and until > start and begin < until:
            yield max(begin, start), 1, what
            if until < end:
                yield until, -1, what


def _spans(node: NodeTime) -> Iterable[tuple[int, int, Any]]:
    yield from ((span.since, span.until, span) for span in node.spans)
    yield from ((closure.start, closure.end, closure) for closure in node.closures)
    yield from ((holding.start, holding.end, holding) for holding in node.holdings)
    yield from ((kept.since, kept.until, kept) for kept in node.kept)


def blocker(span: NodeSpan, holdings: Sequence[Holding], of: BalanceClass) -> Holding | None:
    """Return what has the largest share of a node's memory (or CPUs) beyond its share of the GPUs.

    Of several the lowest run's; None where each has at most its share.
    """
    memory = of is BalanceClass.FREE_MEMORY
    whole = span.memory_b if memory else span.cpus

    def fairness(held: Holding) -> tuple[int, Run]:
        """Return its share of GPUs less that of memory, in parts of both totals: exact, so that equal ones are."""
        return held.gpus * whole - (held.memory_b if memory else held.cpus) * span.gpus, held.run

    found = min(holdings, key=fairness, default=None)
    return None if found is None or fairness(found)[0] >= 0 else found
