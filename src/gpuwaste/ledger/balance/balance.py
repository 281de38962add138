"""The balance of a time: nodes one by one, then the free GPUs against the jobs that wait."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

from gpuwaste.ledger.balance.bounded import ByBlocker, ByKind
from gpuwaste.ledger.balance.contest import Claim, Contest, Offer, Wanted
from gpuwaste.ledger.balance.kept import kept_for
from gpuwaste.ledger.balance.timeline import NodeStretch, NodeTime, stretches_of
from gpuwaste.ledger.balance.types import (
    BalanceClass,
    BalanceInputs,
    BalanceSums,
    Blocking,
    Holding,
    HourSum,
    Run,
    WaitingRun,
)


def balance(inputs: BalanceInputs) -> BalanceSums:
    """Return the sums of [start, end): the classes of each hour add up to the GPUs of the nodes, to the second."""
    holdings = [held for held in inputs.holdings if held.start < inputs.end]  # later starts are not known yet
    nodes = _facts(inputs, holdings)
    held = _held_by_run(holdings)
    times = {name: _stretches(inputs, facts) for name, facts in nodes.items()}
    wanted = []
    kept_on: set[str] = set()
    for run in inputs.waiting:
        since = run.leave
        for kept in kept_for(run, held.get(run.run, ()), times) if run.started else ():
            nodes[kept.holding.node].kept.append(kept)
            kept_on.add(kept.holding.node)
            since = min(since, kept.since)
        begin, until = max(run.eligible, inputs.start), min(since, inputs.end)
        if begin < until:
            wanted.append(Wanted(run, begin, until))
    for name in kept_on:
        times[name] = _stretches(inputs, nodes[name])
    classes, blocked, estimated, over = ByKind(), ByBlocker(), ByKind(), ByKind()
    contested = _Contested(wanted)
    offers = []
    for name in sorted(times):
        for stretch in times[name]:
            _add(stretch, classes, estimated, over)
            if stretch.closed is None and stretch.free.gpus:
                if contested.meets(stretch):
                    offers.append(Offer(name, stretch))
                else:
                    classes.add((stretch.span.kind, BalanceClass.FREE), stretch.start, stretch.end, stretch.free.gpus)
    Contest(nodes, classes, blocked).sweep(offers, wanted, list(claims_of(nodes, inputs.waiting)))
    return BalanceSums(
        {HourSum(hour, *key): total for (hour, key), total in classes.sums.items()},
        {Blocking(hour, *key): total for (hour, key), total in blocked.sums.items()},
        {HourSum(hour, *key): total for (hour, key), total in estimated.sums.items()},
        {HourSum(hour, *key): total for (hour, key), total in over.sums.items()},
    )


def claims_of(nodes: Mapping[str, NodeTime], waiting: Iterable[WaitingRun]) -> Iterator[Claim]:
    """Yield, by node, since when the next run with GPUs to start there has waited; not of runs with a single GPU.

    No job needs less than these, so they are in nobody's way.
    """
    waited = {run.run: run for run in waiting if run.started}
    for name, facts in nodes.items():
        before = None
        for start, run in sorted((held.start, held.run) for held in facts.holdings if held.gpus):
            larger = waited.get(run)
            if larger is not None and larger.gpus > 1:
                begin = larger.eligible if before is None else max(larger.eligible, before)
                if begin < start:
                    yield Claim(name, begin, start, larger.gpus)
            before = start


class _Contested:
    """The times in which any job waits and GPUs are not kept for it, by partition."""

    def __init__(self, wanted: Iterable[Wanted]) -> None:
        self._times: dict[str, list[list[int]]] = {}
        for want in sorted(wanted, key=lambda want: want.since):
            for partition in want.run.partitions:
                times = self._times.setdefault(partition, [])
                if times and want.since <= times[-1][1]:
                    times[-1][1] = max(times[-1][1], want.until)
                else:
                    times.append([want.since, want.until])

    def meets(self, stretch: NodeStretch) -> bool:
        """Return whether a job waits for the partitions of a stretch at any time of it."""
        for partition in stretch.span.kind.partitions.split(","):
            times = self._times.get(partition)
            if times:
                place = bisect_right(times, stretch.end, key=lambda time: time[0]) - 1
                if place >= 0 and times[place][1] > stretch.start:
                    return True
        return False


def _facts(inputs: BalanceInputs, holdings: Iterable[Holding]) -> dict[str, NodeTime]:
    """Return what is known of each node with GPUs, by its name."""
    nodes: dict[str, NodeTime] = {}
    for span in inputs.nodes:
        if span.gpus:
            nodes.setdefault(span.node, NodeTime()).spans.append(span)
    for closure in inputs.closures:
        if closure.node in nodes:
            nodes[closure.node].closures.append(closure)
    for holding in holdings:
        if holding.node in nodes:
            nodes[holding.node].holdings.append(holding)
    return nodes


def _stretches(inputs: BalanceInputs, facts: NodeTime) -> list[NodeStretch]:
    return stretches_of(facts, inputs.start, inputs.end, inputs.states_from)


def _held_by_run(holdings: Iterable[Holding]) -> dict[Run, list[Holding]]:
    found: dict[Run, list[Holding]] = {}
    for holding in holdings:
        if holding.gpus:
            found.setdefault(holding.run, []).append(holding)
    return found


def _add(stretch: NodeStretch, classes: ByKind, estimated: ByKind, over: ByKind) -> None:
    """Add what is decided on the node itself."""
    start, end, span, closed = stretch[:4]
    key = span.kind, BalanceClass.ALLOCATED
    classes.add(key, start, end, stretch.allocated)
    estimated.add(key, start, end, stretch.estimated)
    over.add(key, start, end, stretch.over)
    if closed is not None:
        classes.add((span.kind, closed), start, end, span.gpus - stretch.allocated)
        return
    for of, gpus in stretch.kept:
        classes.add((span.kind, of), start, end, gpus)
