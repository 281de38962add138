"""On which groups of nodes a job can begin, and when: compiled."""

from typing import Final

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import expected
from gpuwaste.sim.slurm import groups as g
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm.best_fit import best_fit, none_usable, usable_cpus
from gpuwaste.sim.slurm.board import Board, Ints
from gpuwaste.sim.slurm.expected import last_of_window
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
def free_within(board: Board, held: Groups, number: int, now: int, last: int) -> int:
    """Fill `begins` of the groups for a job; returns how many nodes have room for it until `last`, reserved or not."""
    job, found = board.jobs[number], 0
    for group in range(held.sizes[g.GROUPS]):
        row = held.groups[group]
        held.begins[group] = -1
        if board.in_partition[job[b.PARTITION], row[g.KLASS]]:
            begin = expected.free_from(board, held.members[row[g.FIRST]], job, now, held.room)
            held.begins[group] = begin
            if begin <= last:
                found += row[g.SIZE]
    return found


@in_place
def free_now(board: Board, held: Groups, number: int, now: int) -> None:
    """Fill `begins` of the groups for a job that starts now: with what completing jobs hold it cannot."""
    job = board.jobs[number]
    for group in range(held.sizes[g.GROUPS]):
        row = held.groups[group]
        node = board.nodes[held.members[row[g.FIRST]]]
        held.begins[group] = now if board.in_partition[job[b.PARTITION], row[g.KLASS]] and on.fits(node, job) else -1


@in_place
def _opens_next(board: Board, held: Groups, spans: Ints, job: Ints, after: int) -> int:
    """Return the first instant after another at which nodes stop being reserved, FOREVER for none."""
    found = b.FOREVER
    for group in range(held.sizes[g.GROUPS]):
        if held.begins[group] < 0:
            continue
        place, end = held.groups[group, g.SPANS], after
        while place >= 0 and (spans[place, g.BEGIN] <= end or end == after):
            if spans[place, g.END] > end and g.blocks(board, spans[place], job):
                end = spans[place, g.END]
            place = spans[place, g.NEXT]
        if after < end < found:
            found = end
    return int(found)


@in_place
def _free_at(board: Board, held: Groups, spans: Ints, job: Ints, tested: int, until: int) -> int:
    """Return how many nodes that nobody has reserved from `tested` on have room for a job at an instant."""
    found = 0
    for group in range(held.sizes[g.GROUPS]):
        if 0 <= held.begins[group] <= until and g.is_open(board, held, spans, group, job, tested):
            found += held.groups[group, g.SIZE]
    return found


@compiled
def _enough_at(board: Board, held: Groups, spans: Ints, job: Ints, now: int, tested: int, events: Ints) -> int:
    """Return when enough nodes that nobody has reserved from `tested` on have room for a job; there is such a time."""
    found = count = k = 0
    for group in range(held.sizes[g.GROUPS]):
        begin = held.begins[group]
        if 0 <= begin < b.FOREVER and g.is_open(board, held, spans, group, job, tested):
            events[count] = _event(begin - now, held.groups[group, g.SIZE])
            count += 1
    in_order = np.sort(events[:count])
    while found < job[b.NODES]:
        found += (in_order[k] & ((1 << _COUNT_BITS) - 1)) - _COUNT_ZERO
        k += 1
    return int(now + (in_order[k - 1] >> _COUNT_BITS))


@compiled
def _end_of_window(board: Board, held: Groups, spans: Ints, job: Ints, now: int, tested: int, enough: int) -> int:
    """Return the last expected end of the window in which nodes become enough."""
    usable = np.zeros(held.sizes[g.GROUPS], np.bool_)
    for group in range(len(usable)):
        usable[group] = held.begins[group] >= 0 and g.is_open(board, held, spans, group, job, tested)
    return last_of_window(board, held, usable, now, enough)


@compiled
def earliest(
    board: Board, held: Groups, spans: Ints, number: int, now: int, tested: int, last: int, events: Ints
) -> tuple[int, int, int]:
    """Return when a job can start, from when on its nodes are not reserved, and when they are believed to be free.

    FOREVER where it cannot start until `last`.

    Nodes that are not reserved from `tested` on are tried, then those from the next instant on at which some stop being
    reserved, unless the job starts before. free_within() has filled `begins`; `events` has room for one of each group.
    """
    job = board.jobs[number]
    while tested <= last:
        following = _opens_next(board, held, spans, job, tested)
        until = min(following, last)
        if _free_at(board, held, spans, job, tested, until) >= job[b.NODES]:
            free = _enough_at(board, held, spans, job, now, tested, events)
            if free > now:
                free = _end_of_window(board, held, spans, job, now, tested, free)
            start = max(free, tested)
            if start <= until:
                return start, tested, free
        tested = following
    return b.FOREVER, tested, b.FOREVER


@in_place
def _keep_marked(held: Groups, spans: Ints, chosen: Ints, wanted: int) -> None:
    """Leave the chosen nodes in the groups that are picked."""
    held.sizes[g.PICKS] += 1
    mark, kept = held.sizes[g.PICKS], 0
    for k in range(wanted):
        held.marks[chosen[k]] = mark
    for k in range(held.sizes[g.PICKED]):
        row, size = held.groups[held.picked[k]], 0
        for place in range(row[g.FIRST], row[g.FIRST] + row[g.SIZE]):
            size += held.marks[held.members[place]] == mark
        if 0 < size < row[g.SIZE]:
            g.split(held, spans, held.picked[k])
        if size > 0:
            held.picked[kept] = held.picked[k]
            kept += 1
    held.sizes[g.PICKED] = kept


@compiled
def pick(board: Board, held: Groups, spans: Ints, number: int, now: int, tested: int, free: int, chosen: Ints) -> None:
    """Choose the nodes of a job, of those that are believed to be free at `free`; split groups until these are whole.

    They are not reserved for a job that begins at `tested`, which may be later; free_within() or free_now() has
    filled `begins`. `picked` has their groups, PICKED of them; `chosen` is overwritten. `spans` has room for as many
    more as it has.
    """
    job, found, count = board.jobs[number], 0, 0
    for group in range(held.sizes[g.GROUPS]):
        if 0 <= held.begins[group] <= free and g.is_open(board, held, spans, group, job, tested):
            found += held.groups[group, g.SIZE]
            held.picked[count] = group
            count += 1
    held.sizes[g.PICKED] = count
    if found == job[b.NODES]:
        return
    cpus_of = none_usable(board.nodes)
    for k in range(count):
        row = held.groups[held.picked[k]]
        cpus = usable_cpus(job, expected.free_cpus_at(board, held.members[row[g.FIRST]], now, free))
        for place in range(row[g.FIRST], row[g.FIRST] + row[g.SIZE]):
            cpus_of[held.members[place]] = cpus
    best_fit(board.nodes, cpus_of, job[b.NODES], chosen)
    _keep_marked(held, spans, chosen, job[b.NODES])
