"""Days of a small machine as slurmdbd has them: node failures, drains, reservations, suspended and other runs.

Times are whole seconds, not rounded. A plain day has nothing that sreport counts otherwise than the balance.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from tests.unit.ledger.balance.drawn_cases import GIB, is_room
from tests.unit.ledger.balance.happened import Amount, Case, Node, Outage, Reservation, Run
from tests.unit.ledger.balance.reference import HOUR

HOURS = 6
_SIZES = {"gpu1": 4, "gpu2": 4, "gpu3": 8}
_STATES = ("DOWN", "DOWN+NOT_RESPONDING", "IDLE+DRAIN", "DOWN+DRAIN", "IDLE+FAIL")
_OTHERS = ("IDLE+CLOUD+POWERED_DOWN", "FUTURE", "UNKNOWN")
_RUNS = 40


def drawn_day(draw: Random, start: int, *, plain: bool) -> Case:
    """Draw what happened from a full hour on; every job has left before the end."""
    case = Case(start, start + HOURS * HOUR, tuple(_nodes(draw, start)))
    outages = tuple(row for name in case.names for row in _outages(draw, case, name, plain=plain))
    case = replace(case, outages=outages)
    if not plain:
        case = replace(case, reservations=tuple(_reservation(draw, case, k) for k in range(draw.randint(1, 6))))
    for job_id in range(1, _RUNS + 1):
        run = _run(draw, case, job_id)
        run = run if draw.random() < 0.2 and not plain else _up_to_outage(case, run)
        if run.start is None or is_room(case, run):
            case = replace(case, runs=(*case.runs, run))
    return case


def _nodes(draw: Random, start: int) -> Iterator[Node]:
    """Yield three nodes, of which the last is added to the machine at some time."""
    for name, gpus in _SIZES.items():
        since = start + (draw.randint(1, 3 * HOUR) if name == "gpu3" else 0)
        yield Node(name, since, start + HOURS * HOUR, gpus, "a100", 64, 512 * GIB, ("gpu",))


def _outages(draw: Random, case: Case, name: str, *, plain: bool) -> Iterator[Outage]:
    """Yield outages of a node one after the other, as slurmdbd has one open event of a node at most."""
    since = next(node.start for node in case.nodes if node.name == name)
    for _ in range(draw.randint(0, 5)):
        start = since + draw.randint(0, 2 * HOUR)
        since = start + draw.randint(1, draw.choice((60, HOUR, 2 * HOUR)))
        if since < case.end:
            state = draw.choice(_STATES if plain else (*_STATES, *_OTHERS))
            shows = state.startswith("DOWN") or "DRAIN" in state  # of others sacctmgr prints MAINT alone
            maint = not plain and shows and draw.random() < 0.2
            yield Outage(name, start, since, state + "+MAINT" * maint)


def _reservation(draw: Random, case: Case, number: int) -> Reservation:
    """Draw a reservation, often from before an outage on; slurmdbd has no order for those that start together."""
    near = [one.start - HOUR // 4 for one in case.outages if one.start < case.end - HOUR]
    start = max(case.start, draw.choice([draw.randint(case.start, case.end - HOUR), *near])) + number
    end = start + draw.randint(1, draw.choice((60, HOUR, 3 * HOUR)))
    flags = draw.choice(((), ("MAINT",), ("MAINT", "IGNORE_JOBS"), ("IGNORE_JOBS", "SPEC_NODES")))
    nodes = tuple(sorted(draw.sample(case.names, draw.randint(1, 2))))
    return Reservation(f"r{number}", nodes, start, min(end, case.end - 1), frozenset(flags))


def _run(draw: Random, case: Case, job_id: int) -> Run:
    """Draw a run on one node or two, one in five cancelled before it starts, some in a reservation."""
    submit = draw.randint(case.start, case.end - HOUR)
    there = [node.name for node in case.nodes if node.start <= submit]
    chosen = sorted(draw.sample(there, draw.choice((1, 1, 2))))
    gpus = draw.choice((0, 1, 1, 2, 3, 4))
    waited = submit + draw.choice((0, 1, 30, 600))
    length = draw.randint(1, draw.choice((60, HOUR, 4 * HOUR)))
    reserved = [one.name for one in case.reservations if set(chosen) <= set(one.nodes)]
    asked = Run(job_id, submit, submit, None, waited, gpus * len(chosen), len(chosen), GIB, len(chosen))
    if draw.random() < 0.2:
        return asked
    return replace(
        asked,
        start=waited,
        end=min(waited + length, case.end - 1),
        held=dict.fromkeys(chosen, Amount(gpus, 1, GIB)),
        reservation=draw.choice(reserved) if reserved and draw.random() < 0.5 else "",
    )


def _up_to_outage(case: Case, run: Run) -> Run:
    """Return the run with the end that an outage of one of its nodes makes; one that would start then never does."""
    if run.start is None or run.end is None:
        return run
    hit = [one for one in case.outages if one.node in run.held and one.start < run.end and run.start < (one.end or 0)]
    first = min((one.start for one in hit), default=run.end)
    return replace(run, end=first) if first > run.start else replace(run, start=None, held={}, reservation="")
