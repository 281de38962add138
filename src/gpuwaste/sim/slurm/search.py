"""On which groups of nodes a job can begin, and when: compiled."""

from typing import Final

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import node_groups as g
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm.best_fit import best_fit, none_usable, usable_cpus
from gpuwaste.sim.slurm.board import Board, Flags, Ints
from gpuwaste.sim.slurm.node_groups import Groups

_JOB_BITS = 32  # an end is its time, the job and whether the job is on usable nodes, in one integer that sorts by time
_COUNT_BITS: Final = 24  # an event is its time and a change of a count of nodes, in one integer that sorts by time
_COUNT_ZERO: Final = 1 << 23


@in_place
def expected_end(job: Ints, now: int) -> int:
    """Return when a job is believed to end: one that outlasts its walltime, by its limit; a completing one, now."""
    if job[b.STATE] == b.COMPLETING:
        return now
    end: int = job[b.START] + job[b.BELIEVED]
    if end <= now:
        end = max(job[b.START] + job[b.LIMIT], now + 1)
    return end


@in_place
def _give_back_completing(board: Board, row: Ints, room: Ints) -> None:
    """Add to a node's room what its completing jobs still hold."""
    place = row[b.HOLDING]
    while place >= 0:
        held = board.holdings[place]
        if board.jobs[held[b.OF_JOB], b.STATE] == b.COMPLETING:
            on.give_back(room, held)
        place = held[b.NEXT_OF_NODE]


@in_place
def free_from(board: Board, node: int, job: Ints, now: int, room: Ints) -> int:  # noqa: C901 one compiled loop, as schedulers/easy.py
    """Return when a node is believed to have what a job requests of it, FOREVER for never; `room` is overwritten."""
    row = board.nodes[node]
    if row[b.DOWN] > 0 or not on.enough(board.full[node], job):
        return b.FOREVER
    if on.fits(row, job):
        return now
    if row[b.JOBS] == 1:
        return expected_end(board.jobs[board.holdings[row[b.HOLDING], b.OF_JOB]], now)
    for column in range(len(row)):
        room[column] = row[column]
    passed = now
    _give_back_completing(board, row, room)
    if on.fits(room, job):
        return now
    while True:
        upcoming = b.FOREVER
        place = row[b.HOLDING]
        while place >= 0:
            end = expected_end(board.jobs[board.holdings[place, b.OF_JOB]], now)
            if passed < end < upcoming:
                upcoming = end
            place = board.holdings[place, b.NEXT_OF_NODE]
        if upcoming == b.FOREVER:
            return b.FOREVER
        passed = upcoming
        place = row[b.HOLDING]
        while place >= 0:
            held = board.holdings[place]
            if expected_end(board.jobs[held[b.OF_JOB]], now) == passed:
                on.give_back(room, held)
            place = held[b.NEXT_OF_NODE]
        if on.fits(room, job):
            return passed


@in_place
def free_cpus_at(board: Board, node: int, now: int, start: int) -> int:
    """Return how many CPUs of a node are believed to be free at an instant, those of completing jobs with them."""
    found: int = board.nodes[node, b.FREE_CPUS]
    place = board.nodes[node, b.HOLDING]
    while place >= 0:
        held = board.holdings[place]
        if expected_end(board.jobs[held[b.OF_JOB]], now) <= start:
            found += held[b.HELD_CPUS]
        place = held[b.NEXT_OF_NODE]
    return found


@in_place
def _ends(board: Board, held: Groups, usable: Flags, now: int) -> int:
    """Fill `ends` with those of the jobs that run on nodes that are up; returns how many."""
    held.sizes[g.LISTS] += 1
    this, count = held.sizes[g.LISTS], 0
    for group in range(held.sizes[g.GROUPS]):
        place = board.nodes[held.members[held.groups[group, g.FIRST]], b.HOLDING]
        while place >= 0:
            number = board.holdings[place, b.OF_JOB]
            listed = held.listed[number]
            if board.jobs[number, b.STATE] == b.COMPLETING:  # no longer a running job
                place = board.holdings[place, b.NEXT_OF_NODE]
                continue
            if listed[0] != this:
                listed[0], listed[1] = this, count
                time = expected_end(board.jobs[number], now) - now
                held.ends[count] = (time << _JOB_BITS) + (number << 1)
                count += 1
            if usable[group]:
                held.ends[listed[1]] |= 1
            place = board.holdings[place, b.NEXT_OF_NODE]
    return count


@compiled
def last_of_window(board: Board, held: Groups, usable: Flags, now: int, enough: int) -> int:
    """Return the last expected end of the window in which the `usable` groups [groups] have enough nodes for a job.

    They have enough at `enough`, which is an expected end of a job on them.
    """
    in_order = np.sort(held.ends[: _ends(board, held, usable, now)])
    window, first, last = board.settings[b.END_WINDOW], -1, now
    for k in range(len(in_order)):
        if in_order[k] & 1 == 0:
            continue
        last = now + (in_order[k] >> _JOB_BITS)
        if first < 0:
            first = last - last % window + window
        if k + 1 == len(in_order):
            break
        following = now + (in_order[k + 1] >> _JOB_BITS)
        if following > first + window:
            if last >= enough:
                break
            while following > first + window:
                window *= 2
    return int(last)


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
            begin = free_from(board, held.members[row[g.FIRST]], job, now, held.room)
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
    """Choose the nodes of a job, of those that are believed to be free at `free`; split groups that it takes in part.

    They are not reserved for a job that begins at `tested`, which may be later; free_within() or free_now() has
    filled `begins`. `picked` has their groups, PICKED of them; `chosen` is overwritten. `spans` has room for as many
    more as it holds.
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
        cpus = usable_cpus(job, free_cpus_at(board, held.members[row[g.FIRST]], now, free))
        for place in range(row[g.FIRST], row[g.FIRST] + row[g.SIZE]):
            cpus_of[held.members[place]] = cpus
    best_fit(board.nodes, cpus_of, job[b.NODES], chosen)
    _keep_marked(held, spans, chosen, job[b.NODES])
