"""A case of the reference as the balance gets it."""

from collections.abc import Iterator

from tests.unit.ledger.balance.happened import ENDLESS, Case, Node, Run
from tests.unit.ledger.balance.reference_rooms import reservation_word, state_word

from gpuwaste.ledger.balance.types import (
    BalanceClass,
    BalanceInputs,
    Closure,
    GpuKind,
    Holding,
    NodeSpan,
    WaitingRun,
)

UNREADABLE = "[rack1|rack2]"
"""A constraint that no node's features decide."""


def engine_inputs(case: Case) -> BalanceInputs:
    """Return the case; runs that start after the window has ended are there with all that they hold later."""
    return BalanceInputs(
        case.start,
        case.end,
        [_node(node) for node in case.nodes],
        list(_closures(case)),
        [holding for run in case.runs for holding in _holdings(run)],
        [_waiting(case, run) for run in case.runs if run.gpus and not run.reservation and not run.is_held],
        case.states_from,
    )


def _node(node: Node) -> NodeSpan:
    kind = GpuKind(node.label, node.gpu_type)
    return NodeSpan(node.name, node.start, node.end, node.gpus, node.cpus, node.memory, kind, node.features)


def _closures(case: Case) -> Iterator[Closure]:
    for outage in case.outages:
        end = ENDLESS if outage.end is None else outage.end
        yield Closure(outage.node, outage.start, end, BalanceClass(state_word(outage.state)))
    for one in case.reservations:
        for name in one.nodes:
            yield Closure(name, one.start, one.end, BalanceClass(reservation_word(one)))


def _holdings(run: Run) -> Iterator[Holding]:
    for name, amount in run.held.items():
        end = ENDLESS if run.end is None else run.end
        yield Holding(run.key, name, run.key[1], end, amount.gpus, amount.cpus, amount.memory, run.is_estimated)


def _waiting(case: Case, run: Run) -> WaitingRun:
    leave = next((t for t in (run.start, run.end) if t is not None), case.end)
    return WaitingRun(
        run.key,
        run.waits_from,
        leave,
        run.start is not None,
        frozenset(run.partitions),
        run.nodes,
        run.gpus,
        run.cpus,
        run.memory,
        run.gpu_type,
        run.limit_s,
        run.is_limited,
        UNREADABLE if run.constraint is None else run.constraint,
    )
