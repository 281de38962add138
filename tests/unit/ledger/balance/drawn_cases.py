"""Small machines with drawn outages, reservations and runs; what runs hold seldom exceeds a node.

Each part is drawn from a seed and its own number, so that a failing case shrinks to fewer of the same parts.
"""

from collections.abc import Sequence
from dataclasses import astuple, replace
from operator import gt
from random import Random
from typing import TypeVar

from hypothesis import strategies as st
from tests.unit.ledger.balance.happened import Case, Node, Outage, Reservation, Run
from tests.unit.ledger.balance.reference import HOUR
from tests.unit.ledger.balance.reference_rooms import node_at, runs_on

GIB = 2**30
START = HOUR - 120
LENGTH = 240
"""Seconds of a window, which ends in the hour after that in which it starts."""
LONG = 10_000
REASONS = ("Resources", "Dependency", "QOSMaxGRESPerUser", "AssocGrpGRES", "PartitionTimeLimit")
STATES = ("DOWN", "DOWN*", "DRAINED", "DRAIN", "DOWN+DRAIN", "FAIL")
FLAGS = (frozenset[str](), frozenset({"MAINT", "IGNORE_JOBS"}), frozenset({"SPEC_NODES"}))

_Value = TypeVar("_Value")


def mostly(draw: Random, usual: _Value, *others: _Value) -> _Value:
    """Draw the usual value four times in five."""
    return usual if draw.random() < 0.8 else draw.choice(others)


def rarely(draw: Random) -> bool:
    """Draw whether something is so that seldom is."""
    return draw.random() < 0.04


def a_time(draw: Random) -> int:
    """Draw a time in or near the window."""
    return draw.randint(START - 60, START + LENGTH + 60)


def a_length(draw: Random) -> int:
    """Draw a length, often a short one."""
    return draw.randint(1, draw.choice((20, 80, LENGTH)))


def drawn_node(draw: Random, name: str) -> list[Node]:
    """Draw a node that may change once; a change may leave a time without it."""
    first = Node(
        name,
        START - LONG,
        START + LONG,
        draw.choice((1, 2, 4, 4, 8)),
        mostly(draw, "a100", "v100", "a100,v100"),
        draw.choice((8, 16)),
        draw.choice((32, 64)) * GIB,
        mostly(draw, ("p",), ("p", "q"), ("q",)),
        draw.choice((frozenset[str](), frozenset({"nvlink"}), frozenset({"nvlink", "ib"}))),
    )
    if draw.random() < 0.8:
        return [first]
    gone, back = sorted((a_time(draw), a_time(draw)))
    back = draw.choice((gone, back))
    changed = replace(first, start=back, gpus=draw.choice((1, 4)), partitions=("p", "q"), features=frozenset())
    return [replace(first, end=gone), changed]


def drawn_outage(draw: Random, names: Sequence[str]) -> Outage:
    """Draw an outage of a node, some without an end."""
    start = a_time(draw)
    return Outage(draw.choice(names), start, mostly(draw, start + a_length(draw), None), draw.choice(STATES))


def drawn_reservation(draw: Random, names: Sequence[str]) -> Reservation:
    """Draw a reservation of some nodes."""
    start = a_time(draw)
    chosen = tuple(sorted(draw.sample(names, draw.randint(1, len(names)))))
    return Reservation("r", chosen, start, start + a_length(draw), draw.choice(FLAGS))


def drawn_request(draw: Random, job_id: int) -> Run:
    """Draw what a job requests, without a start."""
    submit = draw.randint(START - 100, START + LENGTH - 40)
    count = mostly(draw, 1, 2, 3)
    return Run(
        job_id,
        submit,
        mostly(draw, submit, submit + 20, None),
        None,
        None,
        gpus=count * draw.choice((0, 1, 1, 2, 2, 4, 4, 8)) + mostly(draw, 0, 1),
        cpus=0 if rarely(draw) else count * draw.choice((1, 4, 8)),
        memory=0 if rarely(draw) else count * draw.choice((1, 8, 16, 32)) * GIB,
        nodes=count,
        gpu_type=mostly(draw, "", "a100", "v100"),
        partitions=mostly(draw, ("p",), ("q",), ("p", "q")),
        constraint=None if rarely(draw) else mostly(draw, "", "nvlink", "nvlink&ib", "nvlink|ib"),
        reservation=mostly(draw, "", "r"),
        reason=draw.choice(("", "Priority", *REASONS)),
        limit_s=draw.choice((None, 10, 60, 600)),
        is_held=rarely(draw),
    )


def is_room(case: Case, run: Run) -> bool:
    """Whether the nodes, as they are and as far as others leave them, can hold it all the time."""
    assert run.start is not None
    end = START + LONG if run.end is None else run.end
    for name, amount in run.held.items():
        changes = [node.start for node in case.nodes if node.name == name]
        changes += [one.start for one in case.runs if name in one.held and one.start is not None]
        for t in (run.start, *(t for t in changes if run.start < t < end)):
            node = node_at(case, name, t)
            held = [amount, *(one.held[name] for one in runs_on(case, name, t))]
            taken = [sum(parts) for parts in zip(*map(astuple, held), strict=True)]
            if node is not None and any(map(gt, taken, (node.gpus, node.cpus, node.memory))):
                return False
    return True


def drawn_run(draw: Random, case: Case, asked: Run) -> Run | None:
    """Draw where it ran and what it held there, some beyond its share; it starts once there is room, or not at all.

    Of few it is not known where they ran, and few started without room.
    """
    chosen = sorted(draw.sample(case.names, min(asked.nodes, len(case.names))))
    need = replace(asked, nodes=len(chosen)).share
    need = replace(need, cpus=max(1, need.cpus), memory=max(1, need.memory))
    greedy = mostly(draw, need, replace(need, memory=30 * GIB), replace(need, memory=60 * GIB), replace(need, cpus=15))
    length = mostly(draw, a_length(draw), None)
    uneven, is_over, is_lost = draw.random() < 0.3, rarely(draw), rarely(draw)
    for delay in range(draw.choice((0, 1, 30, 61, 100)), 300, 30):
        start = asked.waits_from + delay
        end = None if length is None else start + length
        held = dict.fromkeys(chosen, greedy)
        if len(chosen) > 1 and uneven:
            first, last = chosen[0], chosen[-1]
            held |= {first: replace(greedy, gpus=greedy.gpus + 1), last: replace(greedy, gpus=max(0, greedy.gpus - 1))}
        gpus = sum(amount.gpus for amount in held.values())
        run = replace(asked, nodes=len(chosen), is_held=False, start=start, end=end, held=held, gpus=gpus)
        if is_over or is_room(case, run):
            is_estimated = len(chosen) > 1 and not uneven and draw.random() < 0.5
            return replace(run, held={} if is_lost else held, is_estimated=is_estimated)
    return None


def drawn_job(draw: Random, case: Case, job_id: int) -> Run:
    """Draw a run, or a job that waits until it is cancelled or the window ends."""
    asked = drawn_request(draw, job_id)
    ran = drawn_run(draw, case, asked) if draw.random() < 0.7 else None
    return ran or replace(asked, end=draw.choice((None, None, asked.waits_from + a_length(draw))))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a machine and what happened on it."""
    seed = draw(st.integers(0, 2**32))

    def source(kind: str, number: int) -> Random:
        return Random(f"{seed} {kind} {number}")

    names = [f"n{k}" for k in range(1, 1 + draw(st.integers(1, 4)))]
    case = Case(
        START,
        START + LENGTH,
        tuple(node for k, name in enumerate(names) for node in drawn_node(source("node", k), name)),
        tuple(drawn_outage(source("outage", k), names) for k in range(draw(st.integers(0, 2)))),
        tuple(drawn_reservation(source("reservation", k), names) for k in range(draw(st.integers(0, 2)))),
        states_from=a_time(source("states", 0)) if draw(st.integers(0, 3)) == 1 else 0,
    )
    for k in range(draw(st.integers(3, 14))):
        case = replace(case, runs=(*case.runs, drawn_job(source("job", k), case, k + 1)))
    return case
