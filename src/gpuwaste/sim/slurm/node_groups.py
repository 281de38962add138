"""Nodes that are alike during one cycle of backfill, and what the cycle has reserved on them: compiled.

Nodes of one class with the same jobs on them and the same reservations become free together, so one check serves them
all. A group is a run of `members`, ascending; a reservation of a part of it splits it. Reservations hold whole nodes.
"""

from typing import Final, NamedTuple

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import placement as on
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
PICKS: Final = 4  # so far, of all cycles
LISTS: Final = 5  # of ends, so far


class Groups(NamedTuple):
    """Room for the groups of m nodes, n jobs."""

    groups: Ints
    members: Ints
    group_of: Ints  # [m], of each node at the beginning of the cycle
    of_job: Ints  # [n, 2]: the cycle, and the job's group in it
    room: Ints
    of_class: Ints  # [K, 2]: the cycle, and the group of its idle nodes in it
    marks: Ints  # [m]: the pick for which a node is suitable
    others: Ints  # [m]
    picked: Ints  # [m]
    begins: Ints  # [m]: when a group is believed to have room for the current job, -1 outside its partition
    listed: Ints  # [n, 2]: the list of ends in which a running job is, and its place there
    ends: Ints  # [n], of running jobs (flow.py)
    sizes: Ints


@compiled
def new_groups(board: Board) -> Groups:
    """Return arrays with room for the groups of a board's nodes."""
    m = len(board.nodes)
    return Groups(
        np.empty((m, 4), np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.zeros((len(board.jobs), 2), np.int64),
        np.empty(board.nodes.shape[1], np.int64),
        np.zeros((len(board.idle), 2), np.int64),
        np.zeros(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.zeros((len(board.jobs), 2), np.int64),
        np.empty(len(board.jobs), np.int64),
        np.zeros(6, np.int64),
    )


@in_place
def _group_for(board: Board, held: Groups, node: int) -> int:
    """Return the group that a node belongs to, GROUPS for a new one."""
    row, cycle, fresh = board.nodes[node], held.sizes[CYCLE], held.sizes[GROUPS]
    if row[b.JOBS] > 1:
        return int(fresh)
    alone = row[b.JOBS] == 1
    last = held.of_job[board.holdings[row[b.HOLDING], b.OF_JOB]] if alone else held.of_class[row[b.CLASS]]
    if last[0] == cycle and held.groups[last[1], KLASS] == row[b.CLASS]:
        return int(last[1])
    last[0], last[1] = cycle, fresh
    return int(fresh)


@in_place
def gather(board: Board, held: Groups, spans: Ints) -> None:
    """Group the nodes that are up: idle ones of a class, those with a single job on them, each other one.

    `spans` has room for Slurm's reservations on each node.
    """
    m = len(board.nodes)
    held.sizes[CYCLE] += 1
    held.sizes[USED] = held.sizes[GROUPS] = 0
    for node in range(m):
        held.group_of[node] = -1
        if board.nodes[node, b.DOWN] > 0:
            continue
        group = _group_for(board, held, node)
        if group == held.sizes[GROUPS]:
            held.sizes[GROUPS] += 1
            fresh = held.groups[group]
            fresh[SIZE], fresh[SPANS], fresh[KLASS] = 0, -1, board.nodes[node, b.CLASS]
        held.group_of[node] = group
        held.groups[group, SIZE] += 1
    place = 0
    for group in range(held.sizes[GROUPS]):
        held.groups[group, FIRST] = place
        place += held.groups[group, SIZE]
        held.groups[group, SIZE] = 0
        for r in range(len(board.reservations)):
            if board.reserved[r, held.groups[group, KLASS]]:
                add_span(held, spans, group, board.reservations[r, 0], board.reservations[r, 1], r)
    for node in range(m):
        group = held.group_of[node]
        if group >= 0:
            held.members[held.groups[group, FIRST] + held.groups[group, SIZE]] = node
            held.groups[group, SIZE] += 1


@compiled
def with_room(held: Groups, spans: Ints, more: int) -> Ints:
    """Return the spans with room for so many more."""
    used = held.sizes[USED]
    if used + more <= len(spans):
        return spans
    larger = np.empty((2 * (used + more), 4), np.int64)
    larger[:used] = spans[:used]
    return larger


@in_place
def add_span(held: Groups, spans: Ints, group: int, begin: int, end: int, by: int) -> None:
    """Reserve a group."""
    place = held.sizes[USED]
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


@in_place
def split(held: Groups, spans: Ints, group: int) -> None:
    """Leave the members that the last pick has marked in a group, and put the others into a new one, reserved alike."""
    fresh, row, mark = held.sizes[GROUPS], held.groups[group], held.sizes[PICKS]
    first, size, left = row[FIRST], 0, 0
    for place in range(first, first + row[SIZE]):
        member = held.members[place]
        if held.marks[member] == mark:
            held.members[first + size] = member
            size += 1
        else:
            held.others[left] = member
            left += 1
    for k in range(left):
        held.members[first + size + k] = held.others[k]
    held.sizes[GROUPS] += 1
    other = held.groups[fresh]
    other[FIRST], other[SIZE] = first + size, left
    other[SPANS], other[KLASS] = -1, row[KLASS]
    held.begins[fresh] = held.begins[group]
    row[SIZE] = size
    place = row[SPANS]
    while place >= 0:
        add_span(held, spans, fresh, spans[place, BEGIN], spans[place, END], spans[place, BY])
        place = spans[place, NEXT]


@in_place
def blocks(board: Board, span: Ints, job: Ints) -> bool:
    """Return whether a job may not use what a span reserves."""
    return bool(span[BY] < 0 or not on.may_use(board, span[BY], job))


@in_place
def is_open(board: Board, held: Groups, spans: Ints, group: int, job: Ints, begin: int) -> bool:
    """Return whether no reservation on a group blocks a job that begins then.

    As in slurmctld, a job's reservation also blocks if it begins at the second at which the other job ends.
    """
    place, end = held.groups[group, SPANS], begin + job[b.BELIEVED]
    while place >= 0 and spans[place, BEGIN] <= end:
        span = spans[place]
        if span[END] > begin and (span[BEGIN] < end or span[BY] < 0) and blocks(board, span, job):
            return False
        place = span[NEXT]
    return True


@in_place
def overlaps(held: Groups, spans: Ints, begin: int, end: int) -> bool:
    """Return whether a job has reserved a picked group between two instants."""
    for k in range(held.sizes[PICKED]):
        place = held.groups[held.picked[k], SPANS]
        while place >= 0 and spans[place, BEGIN] < end:
            if spans[place, END] > begin and spans[place, BY] < 0:
                return True
            place = spans[place, NEXT]
    return False
