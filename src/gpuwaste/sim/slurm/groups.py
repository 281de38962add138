"""Nodes that are alike during one cycle of backfill, and what the cycle has reserved on them: compiled.

Nodes of one class with the same jobs on them and the same reservations become free together, so one look serves them
all. A group is a run of `members`; a reservation of a part of it splits it. Reservations hold whole nodes.
"""

from typing import Final, NamedTuple

import numpy as np

from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm.best_fit import best_fit, none_usable, usable_cpus
from gpuwaste.sim.slurm.board import Board, Ints

# Columns of `groups`.
FIRST: Final = 0  # place of its first member
SIZE: Final = 1
SPANS: Final = 2  # first reservation, -1 for none; by their begin
KLASS: Final = 3

# Columns of `spans`: nodes are reserved from BEGIN until END; BY is the number of Slurm's reservation, -1 for a job's.
BEGIN: Final = 0
END: Final = 1
NEXT: Final = 2
BY: Final = 3

# Places of `sizes`.
GROUPS: Final = 0
USED: Final = 1  # spans
CYCLE: Final = 2
PICKED: Final = 3

_COUNT_BITS: Final = 24  # an event is its time and a change of a count of nodes, in one integer that sorts by time
_COUNT_ZERO: Final = 1 << 23


class Groups(NamedTuple):
    """Room for the groups of m nodes, n jobs."""

    groups: Ints
    members: Ints
    group_of: Ints  # [m], of each node at the beginning of the cycle
    of_job: Ints  # [n, 2]: the cycle, and the job's group in it
    room: Ints
    marks: Ints  # [m]
    others: Ints  # [m]
    picked: Ints  # [m]
    sizes: Ints


@compiled
def new_groups(board: Board) -> Groups:
    """Return room for the groups of a board's nodes."""
    m = len(board.nodes)
    return Groups(
        np.empty((m, 4), np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.zeros((len(board.jobs), 2), np.int64),
        np.empty(board.nodes.shape[1], np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.zeros(4, np.int64),
    )


@compiled
def _group_for(board: Board, held: Groups, node: int, of_class: Ints) -> int:
    """Return the group that a node belongs to, -1 for one of its own."""
    row = board.nodes[node]
    if row[b.JOBS] == 0:
        return int(of_class[row[b.CLASS]])
    if row[b.JOBS] > 1:
        return -1
    last = held.of_job[board.holdings[row[b.HOLDING], b.OF_JOB]]
    if last[0] != held.sizes[CYCLE] or held.groups[last[1], KLASS] != row[b.CLASS]:
        return -1
    return int(last[1])


@compiled
def gather(board: Board, held: Groups, spans: Ints) -> Ints:  # noqa: C901 one compiled loop, as schedulers/easy.py
    """Group the nodes that are up: idle ones of a class, those that one job alone is on, each other one.

    Returns the spans, with those of Slurm's reservations.
    """
    m, count = len(board.nodes), 0
    held.sizes[CYCLE] += 1
    held.sizes[USED] = 0
    of_class = np.full(len(board.classes), -1, np.int64)
    for node in range(m):
        row = board.nodes[node]
        held.group_of[node] = -1
        if row[b.DOWN] > 0:
            continue
        group = _group_for(board, held, node, of_class)
        if group < 0:
            group = count
            count += 1
            fresh = held.groups[group]
            fresh[SIZE], fresh[SPANS], fresh[KLASS] = 0, -1, row[b.CLASS]
            if row[b.JOBS] == 0:
                of_class[row[b.CLASS]] = group
            elif row[b.JOBS] == 1:
                last = held.of_job[board.holdings[row[b.HOLDING], b.OF_JOB]]
                last[0], last[1] = held.sizes[CYCLE], group
        held.group_of[node] = group
        held.groups[group, SIZE] += 1
    held.sizes[GROUPS] = count
    place = 0
    for group in range(count):
        held.groups[group, FIRST] = place
        place += held.groups[group, SIZE]
        held.groups[group, SIZE] = 0
        for r in range(len(board.reservations)):
            if board.reserved[r, held.groups[group, KLASS]]:
                spans = add_span(held, spans, group, board.reservations[r, 0], board.reservations[r, 1], r)
    for node in range(m):
        group = held.group_of[node]
        if group >= 0:
            row = held.groups[group]
            held.members[row[FIRST] + row[SIZE]] = node
            row[SIZE] += 1
    return spans


@compiled
def add_span(held: Groups, spans: Ints, group: int, begin: int, end: int, by: int) -> Ints:
    """Reserve a group; returns the spans, moved to a larger room at need."""
    place = held.sizes[USED]
    if place == len(spans):
        larger = np.empty((2 * place, 4), np.int64)
        larger[:place] = spans
        spans = larger
    held.sizes[USED] += 1
    spans[place, BEGIN], spans[place, END], spans[place, BY] = begin, end, by
    after, before = held.groups[group, SPANS], -1
    while after >= 0 and spans[after, BEGIN] < begin:
        before, after = after, spans[after, NEXT]
    spans[place, NEXT] = after
    if before < 0:
        held.groups[group, SPANS] = place
    else:
        spans[before, NEXT] = place
    return spans


@compiled
def split(held: Groups, spans: Ints, group: int) -> Ints:
    """Leave the members that are marked in a group, and put the others into a new one, reserved alike."""
    fresh, row = held.sizes[GROUPS], held.groups[group]
    begin, size, left = row[FIRST], 0, 0
    for place in range(begin, begin + row[SIZE]):
        member = held.members[place]
        if held.marks[member]:
            held.members[begin + size] = member
            size += 1
        else:
            held.others[left] = member
            left += 1
    held.members[begin + size : begin + size + left] = held.others[:left]
    held.sizes[GROUPS] += 1
    other = held.groups[fresh]
    other[FIRST], other[SIZE] = begin + size, left
    other[SPANS], other[KLASS] = -1, row[KLASS]
    row[SIZE] = size
    place = row[SPANS]
    while place >= 0:
        spans = add_span(held, spans, fresh, spans[place, BEGIN], spans[place, END], spans[place, BY])
        place = spans[place, NEXT]
    return spans


@compiled
def _blocks(board: Board, span: Ints, job: Ints) -> bool:
    return bool(span[BY] < 0 or not on.may_use(board, span[BY], job))


@compiled
def is_open(board: Board, held: Groups, spans: Ints, group: int, job: Ints, begin: int) -> bool:
    """Say whether nothing that is reserved on a group stands in the way of a job that begins then.

    As slurmctld has it, a job's reservation also does that if it begins at the second at which the other job ends.
    """
    place, end = held.groups[group, SPANS], begin + job[b.BELIEVED]
    while place >= 0 and spans[place, BEGIN] <= end:
        span = spans[place]
        if span[END] > begin and (span[BEGIN] < end or span[BY] < 0) and _blocks(board, span, job):
            return False
        place = span[NEXT]
    return True


@compiled
def overlaps(held: Groups, spans: Ints, begin: int, end: int) -> bool:
    """Say whether a job has reserved a picked group between two instants."""
    for k in range(held.sizes[PICKED]):
        place = held.groups[held.picked[k], SPANS]
        while place >= 0 and spans[place, BEGIN] < end:
            if spans[place, END] > begin and spans[place, BY] < 0:
                return True
            place = spans[place, NEXT]
    return False


@compiled
def count_now(board: Board, held: Groups, spans: Ints, number: int, now: int) -> int:
    """Return how many nodes a job can start on now."""
    job, found = board.jobs[number], 0
    for group in range(held.sizes[GROUPS]):
        row = held.groups[group]
        if (
            board.in_partition[job[b.PARTITION], row[KLASS]]
            and on.fits(board.nodes[held.members[row[FIRST]]], job)
            and is_open(board, held, spans, group, job, now)
        ):
            found += row[SIZE]
    return found


@compiled
def _event(time: int, change: int) -> int:
    return (time << _COUNT_BITS) + change + _COUNT_ZERO


@compiled
def _opens_next(board: Board, held: Groups, spans: Ints, job: Ints, after: int) -> int:
    """Return the first instant after another at which nodes stop being reserved, FOREVER for none."""
    found = b.FOREVER
    for group in range(held.sizes[GROUPS]):
        row = held.groups[group]
        if not board.in_partition[job[b.PARTITION], row[KLASS]]:
            continue
        place = row[SPANS]
        while place >= 0:
            end, other = spans[place, END], row[SPANS]
            if after < end < found and _blocks(board, spans[place], job):
                while other >= 0 and not (
                    spans[other, BEGIN] <= end < spans[other, END] and _blocks(board, spans[other], job)
                ):
                    other = spans[other, NEXT]
                if other < 0:
                    found = end
            place = spans[place, NEXT]
    return int(found)


@compiled
def _start_on(board: Board, held: Groups, spans: Ints, number: int, now: int, tested: int, events: Ints) -> int:
    """Return when a job is believed to start on nodes that nobody has reserved from `tested` on; FOREVER for never.

    Source: `_will_run_test` of Slurm 22.05's select plugins. Running jobs are taken away in the order of their expected
    ends, all of a window at once, and windows double: the start is the last end of the first window that is enough.
    """
    job, count, first_end = board.jobs[number], 0, b.FOREVER
    for group in range(held.sizes[GROUPS]):
        row = held.groups[group]
        if board.in_partition[job[b.PARTITION], row[KLASS]] and is_open(board, held, spans, group, job, tested):
            node = held.members[row[FIRST]]
            begin = on.free_from(board, node, job, now, held.room)
            first_end = min(first_end, on.next_end(board, node, now))
            if begin < b.FOREVER:
                events[count] = _event(begin - now, row[SIZE])
                count += 1
    in_order = np.sort(events[:count])
    found = k = 0
    while k < count and found < job[b.NODES]:
        found += (in_order[k] & ((1 << _COUNT_BITS) - 1)) - _COUNT_ZERO
        k += 1
    if found < job[b.NODES]:
        return b.FOREVER
    enough = now + (in_order[k - 1] >> _COUNT_BITS)
    if enough <= now:
        return tested
    window = board.settings[b.END_WINDOW]
    first, width = first_end - first_end % window + window, window
    while first + width < enough:
        width *= 2
    last = enough
    for group in range(held.sizes[GROUPS]):
        row = held.groups[group]
        if board.in_partition[job[b.PARTITION], row[KLASS]] and is_open(board, held, spans, group, job, tested):
            last = max(last, on.last_end(board, held.members[row[FIRST]], now, first + width))
    return int(max(last, tested))


@compiled
def earliest(
    board: Board, held: Groups, spans: Ints, number: int, now: int, tested: int, last: int, events: Ints
) -> tuple[int, int]:
    """Return when a job can start, and from when on its nodes are not reserved; FOREVER where not until `last`.

    Nodes that are not reserved from `tested` on are tried, then those from the next instant on at which some stop being
    reserved, unless the job starts before. `events` has room for one of each group.
    """
    while tested <= last:
        start = _start_on(board, held, spans, number, now, tested, events)
        following = _opens_next(board, held, spans, board.jobs[number], tested)
        if start <= following:
            return (start, tested) if start <= last else (b.FOREVER, tested)
        tested = following
    return b.FOREVER, tested


@compiled
def pick(board: Board, held: Groups, spans: Ints, number: int, now: int, tested: int, start: int, chosen: Ints) -> Ints:
    """Choose the nodes of a job that begins at `start`, and split groups until these are whole groups.

    They are not reserved for a job that begins at `tested`. `picked` has their groups, PICKED of them; `chosen` is
    overwritten. Returns the spans.
    """
    job, free = board.jobs[number], none_usable(board.nodes)
    found = count = 0
    for group in range(held.sizes[GROUPS]):
        row = held.groups[group]
        first = held.members[row[FIRST]]
        if (
            board.in_partition[job[b.PARTITION], row[KLASS]]
            and on.free_from(board, first, job, now, held.room) <= start
            and is_open(board, held, spans, group, job, tested)
        ):
            cpus = usable_cpus(job, on.free_cpus_at(board, first, now, start))
            for place in range(row[FIRST], row[FIRST] + row[SIZE]):
                free[held.members[place]] = cpus
            found += row[SIZE]
            held.picked[count] = group
            count += 1
    held.sizes[PICKED] = count
    if found == job[b.NODES]:
        return spans
    best_fit(board.nodes, free, job[b.NODES], chosen)
    held.marks[:] = 0
    for k in range(job[b.NODES]):
        held.marks[chosen[k]] = 1
    kept = 0
    for k in range(count):
        row, size = held.groups[held.picked[k]], 0
        for place in range(row[FIRST], row[FIRST] + row[SIZE]):
            size += held.marks[held.members[place]]
        if 0 < size < row[SIZE]:
            spans = split(held, spans, held.picked[k])
        if size > 0:
            held.picked[kept] = held.picked[k]
            kept += 1
    held.sizes[PICKED] = kept
    return spans
