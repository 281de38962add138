"""What `sreport cluster Utilization --tres gres/gpu` says of an hour, from the balance's classes and named differences.

slurmdbd adds up each hour over the whole cluster (as_mysql_rollup.c of Slurm 22.05 to 26.05), so that some GPU-seconds
are in another column than their class: `moves` names each with its cause. docs/explanation/balance.md has the table.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from tests.unit.ledger.balance.happened import ENDLESS, Case, Node, Outage, Reservation, Run
from tests.unit.ledger.balance.reference import HOUR
from tests.unit.ledger.balance.reference_rooms import node_at, runs_on

COLUMNS: Final = ("Allocated", "Down", "PLND Down", "Idle", "Planned")
COLUMN: Final = {"allocated": "Allocated", "down": "Down", "drained": "Down"}
"""The column of each class that is not Idle. Planned is of CPUs alone: slurmdbd gives no GPU-second to it."""
Columns = Counter[str]


class Cause(StrEnum):
    """Why sreport has GPU-seconds in another column than their class."""

    RESERVED_RUN = "run of a reservation"
    BUSY_WHILE_DOWN = "run on a node that is down"
    LEFT_OUT = "event with MAINT"
    DOWN_IN_MAINTENANCE = "down in a reservation with MAINT"
    BESIDE_RESERVATION = "event and reservation in one hour"
    POWERED_DOWN = "node that is powered down"
    STARTING = "node that has not registered yet"


@dataclass(frozen=True)
class Move:
    """GPU-seconds of an hour that are in another column than that of their class."""

    cause: Cause
    source: str
    target: str
    gpu_s: int


def columns(classes: Counter[str]) -> Columns:
    """Return sreport's columns where it agrees with the balance."""
    found = Columns(dict.fromkeys(COLUMNS, 0))
    for word, gpu_s in classes.items():
        found[COLUMN.get(word, "Idle")] += gpu_s
    return found


def with_moves(agreed: Columns, found: Iterable[Move]) -> Columns:
    """Return the columns with all differences."""
    moved = agreed.copy()
    for move in found:
        moved[move.source] -= move.gpu_s
        moved[move.target] += move.gpu_s
    return _trimmed(moved, sum(agreed.values()))


def _trimmed(found: Columns, total: int) -> Columns:
    """Cut what is more than the hour has, as slurmdbd does: Allocated is kept, then Down, then planned down time."""
    left = total
    for column in ("Allocated", "Down", "PLND Down"):
        found[column] = min(found[column], left)
        left -= found[column]
    found["Idle"] = left
    return found


def moves(case: Case, start: int, end: int) -> list[Move]:
    """Return what makes an hour of sreport differ from the balance."""
    rows = [
        *_reserved_runs(case, start, end),
        *_busy_while_down(case, start, end),
        *_left_out(case, start, end),
        *_down_in_maintenance(case, start, end),
        *_down_beside_reservation(case, start, end),
        *_powered_down(case, start, end),
        *_takes_jobs(case, start, end),
    ]
    return [row for row in rows if row.gpu_s]


def _reserved_runs(case: Case, start: int, end: int) -> Iterator[Move]:
    """Yield runs of reservations: they count as part of it, and a reservation has CPUs alone, so their GPUs are idle.

    With IGNORE_JOBS the reservation itself does not count, and its runs do as long as it lasts.
    """
    for run in case.runs:
        if run.reservation and run.start is not None:
            span = (run.start, ENDLESS if run.end is None else run.end)
            lost = _common((start, end), span)
            for one in _named(case, run.reservation):
                if "IGNORE_JOBS" in one.flags:
                    lost -= _common((start, end), span, (one.start, one.end))
            gpus = sum(amount.gpus for amount in run.held.values())
            yield Move(Cause.RESERVED_RUN, "Allocated", "Idle", gpus * lost)


def _busy_while_down(case: Case, start: int, end: int) -> Iterator[Move]:
    """Yield runs on nodes that are down: such a node counts with all its GPUs, those that runs hold too."""
    for outage in _counted(case):
        held = _held(case, outage.node, _clipped(outage, start, end))
        yield Move(Cause.BUSY_WHILE_DOWN, "Idle", "Down", held)


def _left_out(case: Case, start: int, end: int) -> Iterator[Move]:
    """Yield events with MAINT in their state, as slurmctld sets it in such a reservation: they do not count."""
    for outage in case.outages:
        if "MAINT" in outage.state:
            yield Move(Cause.LEFT_OUT, "Down", "Idle", _rest(case, outage.node, _clipped(outage, start, end)))


def _down_in_maintenance(case: Case, start: int, end: int) -> Iterator[Move]:
    """Yield nodes that are down, without MAINT in their state, in a reservation with MAINT: that was planned."""
    for outage in _counted(case):
        span = _clipped(outage, start, end)
        for one in _of_node(case, outage.node, start, end):
            if "MAINT" in one.flags:
                length = _common(span, (one.start, one.end))
                gpus = _gpus(case, outage.node, span)
                yield Move(Cause.DOWN_IN_MAINTENANCE, "Down", "PLND Down", gpus * length)


def _down_beside_reservation(case: Case, start: int, end: int) -> Iterator[Move]:
    """Yield nodes with an event and a reservation in one hour: they are down for the time between these two, too."""
    for outage in _counted(case):
        span = _clipped(outage, start, end)
        inside = sum(max(0, overlap) for overlap in _overlaps(case, outage, start, end))
        more = inside + _outside(case, outage, start, end) - _common(span)
        yield Move(Cause.BESIDE_RESERVATION, "Idle", "Down", _gpus(case, outage.node, span) * more)


def _powered_down(case: Case, start: int, end: int) -> Iterator[Move]:
    """Yield nodes that are powered down to save power, or not yet there: outside of reservations that was planned."""
    for outage in _counted(case):
        if "CLOUD+POWERED_DOWN" in outage.state or "FUTURE" in outage.state:
            gpus = _gpus(case, outage.node, _clipped(outage, start, end))
            yield Move(Cause.POWERED_DOWN, "Down", "PLND Down", gpus * _outside(case, outage, start, end))


def _takes_jobs(case: Case, start: int, end: int) -> Iterator[Move]:
    """Yield nodes that are down to sreport alone: slurmctld powers them up for a job, or waits for them to register."""
    causes = {"IDLE+CLOUD+POWERED_DOWN": Cause.POWERED_DOWN, "UNKNOWN": Cause.STARTING}
    for outage in _counted(case):
        if cause := causes.get(outage.state):
            yield Move(cause, "Idle", "Down", _rest(case, outage.node, _clipped(outage, start, end)))


def _outside(case: Case, outage: Outage, start: int, end: int) -> int:
    """Return the seconds of an event outside of reservations, as slurmdbd has them.

    It takes away the time in the last reservation alone, and signed: where that is before or after the event, the
    time between the two is added.
    """
    length = _common(_clipped(outage, start, end))
    overlaps = _overlaps(case, outage, start, end)
    return max(0, length - overlaps[-1]) if overlaps else length


def _overlaps(case: Case, outage: Outage, start: int, end: int) -> list[int]:
    """Return the signed length of an event's time in each reservation that its node has in the hour."""
    span = _clipped(outage, start, end)
    reserved = _of_node(case, outage.node, start, end) if _common(span) else []
    return [min(span[1], one.end, end) - max(span[0], one.start, start) for one in reserved]


def _held(case: Case, name: str, span: tuple[int, int]) -> int:
    """Return the GPU-seconds that runs hold of a node."""
    return sum(run.held[name].gpus * length for t, length in _pieces(case, *span) for run in runs_on(case, name, t))


def _rest(case: Case, name: str, span: tuple[int, int]) -> int:
    """Return the GPU-seconds of a node that no run holds."""
    return _gpus(case, name, span) * _common(span) - _held(case, name, span)


def _counted(case: Case) -> list[Outage]:
    return [outage for outage in case.outages if "MAINT" not in outage.state]


def _clipped(outage: Outage, start: int, end: int) -> tuple[int, int]:
    return max(start, outage.start), end if outage.end is None else min(end, outage.end)


def _common(*spans: tuple[int, int]) -> int:
    return max(0, min(end for _, end in spans) - max(start for start, _ in spans))


def _gpus(case: Case, name: str, span: tuple[int, int]) -> int:
    node = node_at(case, name, span[0])
    return node.gpus if node and span[0] < span[1] else 0


def _named(case: Case, name: str) -> list[Reservation]:
    return [one for one in case.reservations if one.name == name]


def _of_node(case: Case, node: str, start: int, end: int) -> list[Reservation]:
    """Return the reservations of a node that have a second in the hour, in slurmdbd's order."""
    mine = [one for one in case.reservations if node in one.nodes and _common((start, end), (one.start, one.end))]
    return sorted(mine, key=lambda one: one.start)


def _pieces(case: Case, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (start, length) of the pieces between which nothing starts or ends."""
    if start >= end:
        return
    rows: list[Node | Outage | Reservation | Run] = [*case.nodes, *case.outages, *case.reservations, *case.runs]
    times = {start, end, *(t for row in rows for t in (row.start, row.end) if t is not None and start < t < end)}
    for t, after in pairwise(sorted(times)):
        yield t, after - t


def hours(case: Case) -> Iterator[tuple[int, int]]:
    """Yield start and end of each hour of the window."""
    for start in range(case.start, case.end, HOUR):
        yield start, start + HOUR
