"""On which groups of nodes a job can begin, and when: compiled."""

from typing import Final

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import groups as g
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm.board import Board, Ints
from gpuwaste.sim.slurm.groups import Groups

_COUNT_BITS: Final = 24  # an event is its time and a change of a count of nodes, in one integer that sorts by time
_COUNT_ZERO: Final = 1 << 23


@in_place
def count_now(board: Board, held: Groups, spans: Ints, number: int, now: int) -> int:
    """Return how many nodes a job can start on now."""
    job, found = board.jobs[number], 0
    for group in range(held.sizes[g.GROUPS]):
        row = held.groups[group]
        if (
            board.in_partition[job[b.PARTITION], row[g.KLASS]]
            and on.fits(board.nodes[held.members[row[g.FIRST]]], job)
            and g.is_open(board, held, spans, group, job, now)
        ):
            found += row[g.SIZE]
    return found


@in_place
def _event(time: int, change: int) -> int:
    return (time << _COUNT_BITS) + change + _COUNT_ZERO


@in_place
def _changes(board: Board, held: Groups, spans: Ints, number: int, now: int, last: int, events: Ints) -> int:
    """Fill `events` with changes of the count of nodes on which a job could begin, up to `last`; returns how many."""
    job, count = board.jobs[number], 0
    lasts = job[b.BELIEVED]
    for group in range(held.sizes[g.GROUPS]):
        row = held.groups[group]
        if not board.in_partition[job[b.PARTITION], row[g.KLASS]]:
            continue
        begin = on.free_from(board, held.members[row[g.FIRST]], job, now, held.room)
        place = row[g.SPANS]
        while place >= 0 and begin <= last:
            by = spans[place, g.BY]
            if by < 0 or not on.may_use(board, by, job):
                if spans[place, g.BEGIN] - lasts >= begin:
                    events[count] = _event(begin - now, row[g.SIZE])
                    events[count + 1] = _event(spans[place, g.BEGIN] - lasts + 1 - now, -row[g.SIZE])
                    count += 2
                begin = max(begin, spans[place, g.END])
            place = spans[place, g.NEXT]
        if begin <= last:
            events[count] = _event(begin - now, row[g.SIZE])
            count += 1
    return count


@compiled
def earliest(board: Board, held: Groups, spans: Ints, number: int, now: int, last: int, events: Ints) -> int:
    """Return when enough nodes are free for as long as a job is believed to run, FOREVER where not until `last`.

    Each group gives the instants at which the job could begin there; they are added up in the order of time. `events`
    has room for one of each group, and two of each span.
    """
    wanted = board.jobs[number, b.NODES]
    count = _changes(board, held, spans, number, now, last, events)
    in_order = np.sort(events[:count])
    found = k = 0
    while k < count:
        time = in_order[k] >> _COUNT_BITS
        while k < count and in_order[k] >> _COUNT_BITS == time:
            found += (in_order[k] & ((1 << _COUNT_BITS) - 1)) - _COUNT_ZERO
            k += 1
        if found >= wanted:
            return int(now + time) if now + time <= last else b.FOREVER
    return b.FOREVER


@in_place
def _up_to(held: Groups, group: int, node: int) -> int:
    """Return how many members of a group come no later than a node."""
    first = held.groups[group, g.FIRST]
    low, high = first, first + held.groups[group, g.SIZE]
    while low < high:
        middle = (low + high) // 2
        if held.members[middle] <= node:
            low = middle + 1
        else:
            high = middle
    return int(low - first)


@in_place
def _last_of(held: Groups, wanted: int) -> int:
    """Return the node with which the groups that are picked have so many, in the order of nodes."""
    held.sizes[g.PICKS] += 1
    mark, last = held.sizes[g.PICKS], -1
    for k in range(held.sizes[g.PICKED]):
        row = held.groups[held.picked[k]]
        for place in range(row[g.FIRST], row[g.FIRST] + row[g.SIZE]):
            held.marks[held.members[place]] = mark
    while wanted > 0:
        last += 1
        wanted -= held.marks[last] == mark
    return last


@in_place
def pick(board: Board, held: Groups, spans: Ints, number: int, now: int, start: int) -> None:
    """Find the first nodes on which a job can begin at `start`, and split groups until these are whole groups.

    `picked` has their groups, PICKED of them. `spans` has room for as many more as it has.
    """
    job = board.jobs[number]
    found = count = 0
    for group in range(held.sizes[g.GROUPS]):
        row = held.groups[group]
        if (
            board.in_partition[job[b.PARTITION], row[g.KLASS]]
            and on.free_from(board, held.members[row[g.FIRST]], job, now, held.room) <= start
            and g.is_open(board, held, spans, group, job, start)
        ):
            found += row[g.SIZE]
            held.picked[count] = group
            count += 1
    held.sizes[g.PICKED] = count
    if found == job[b.NODES]:
        return
    last, kept = _last_of(held, job[b.NODES]), 0
    for k in range(count):
        group = held.picked[k]
        size = _up_to(held, group, last)
        if 0 < size < held.groups[group, g.SIZE]:
            g.split(held, spans, group, size)
        if size > 0:
            held.picked[kept] = group
            kept += 1
    held.sizes[g.PICKED] = kept
