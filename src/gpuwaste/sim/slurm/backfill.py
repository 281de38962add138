"""One cycle of sched/backfill: jobs in the order of the queue start now, or reserve whole nodes for later: compiled.

Only what starts now outlasts a cycle. A cycle therefore ends as soon as no job further down could start now: one that
has too few unreserved nodes now does not get more of them later in the cycle.
"""

from typing import NamedTuple

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import flow, holds, search
from gpuwaste.sim.slurm import node_groups as g
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm.board import Board, Flags, Ints
from gpuwaste.sim.slurm.node_groups import Groups


class Notes(NamedTuple):
    """What a cycle knows of jobs that request the same [likes, 2]: the cycle, and the least walltime it holds for."""

    stuck: Ints  # they cannot start now
    late: Ints  # [likes]: the cycle in which too few nodes were free within the window, reserved or not
    of_user: Ints  # [users, 2]: the cycle, and how many of the user's jobs were tested
    clock: Ints  # [n]: the second at which the cycle reaches a job; [0]: a cycle takes no time


@compiled
def new_notes(board: Board, clock: Ints) -> Notes:
    """Return notes that hold for no cycle; the clock is kept, not copied."""
    likes, users = board.jobs[:, b.LIKE].max() + 1, board.jobs[:, b.USER].max() + 1
    return Notes(np.zeros((likes, 2), np.int64), np.zeros(likes, np.int64), np.zeros((users, 2), np.int64), clock)


@in_place
def _known(note: Ints, cycle: int, job: Ints) -> bool:
    row = note[job[b.LIKE]]
    return bool(row[0] == cycle and job[b.BELIEVED] >= row[1])


@in_place
def _note(note: Ints, cycle: int, job: Ints) -> None:
    row = note[job[b.LIKE]]
    row[0], row[1] = cycle, job[b.BELIEVED]


@in_place
def _of_user(notes: Notes, cycle: int, job: Ints) -> int:
    """Return how many jobs of a job's user were tested before it in the cycle, and count it."""
    row = notes.of_user[job[b.USER]]
    if row[0] != cycle:
        row[0], row[1] = cycle, 0
    row[1] += 1
    return int(row[1] - 1)


@in_place
def _clock(notes: Notes, number: int, now: int) -> int:
    """Return when a cycle that began at `now` reaches a job."""
    return int(notes.clock[number]) if len(notes.clock) > 0 else now


@in_place
def _can_start(board: Board, held: Groups, spans: Ints, notes: Notes, number: int, now: int) -> bool:
    """Return whether a job has enough nodes now that nobody has reserved."""
    job, cycle = board.jobs[number], held.sizes[g.CYCLE]
    if _known(notes.stuck, cycle, job):
        return False
    if (
        on.may_fit(board, job, board.in_partition[job[b.PARTITION]])
        and search.count_now(board, held, spans, number, now) >= job[b.NODES]
    ):
        return True
    _note(notes.stuck, cycle, job)
    return False


@in_place
def _any_may_fit(board: Board, reach: int) -> bool:
    """Return whether any of the first `reach` jobs may start, by counts only: most cycles end here."""
    for k in range(reach):
        number = board.queue[k]
        job = board.jobs[number]
        may = on.may_fit(board, job, board.in_partition[job[b.PARTITION]]) or flow.can_preempt(board, number)
        if may and not holds.is_held(board, number):
            return True
    return False


@compiled
def _reserve(
    board: Board, held: Groups, spans: Ints, notes: Notes, number: int, now: int, events: Ints, chosen: Ints
) -> Ints:
    """Reserve whole nodes for a job that can start within the window; returns the spans, with more room if needed."""
    job, tested, resolution = board.jobs[number], now, board.settings[b.RESOLUTION]
    until = now + board.settings[b.WINDOW]
    if search.free_within(board, held, number, now, until) < job[b.NODES]:
        notes.late[job[b.LIKE]] = held.sizes[g.CYCLE]
        return spans
    while True:
        start, tested, free = search.earliest(board, held, spans, number, now, tested, until, events)
        if start == b.FOREVER:
            return spans
        spans = g.with_room(held, spans, held.sizes[g.USED] + len(board.nodes))  # for splits and a reservation
        search.pick(board, held, spans, number, now, tested, free, chosen)
        first = start // resolution * resolution
        last = (start + job[b.BELIEVED]) // resolution * resolution
        if start == tested or not g.overlaps(held, spans, first, last):
            break
        tested = start
    for k in range(held.sizes[g.PICKED]):
        g.add_span(held, spans, held.picked[k], first, max(last, first + resolution), -1)
    return spans


@compiled
def _start(board: Board, held: Groups, spans: Ints, number: int, now: int, chosen: Ints) -> None:
    search.free_now(board, held, number, now)
    search.pick(board, held, spans, number, now, now, now, chosen)
    for k in range(held.sizes[g.PICKED]):
        row = held.groups[held.picked[k]]
        for place in range(row[g.FIRST], row[g.FIRST] + row[g.SIZE]):
            on.hold(board, number, held.members[place])
    flow.begin(board, number, now)


@compiled
def _preempts(board: Board, held: Groups, spans: Ints, number: int, now: int, chosen: Ints) -> bool:
    """Let a job preempt on nodes that are not reserved; returns whether it started."""
    if not flow.can_preempt(board, number):
        return False
    job, shut = board.jobs[number], np.ones(len(board.nodes), np.bool_)
    allowed: Flags = board.in_partition[job[b.PARTITION]]
    for group in range(held.sizes[g.GROUPS]):
        if g.is_open(board, held, spans, group, job, now):
            row = held.groups[group]
            for place in range(row[g.FIRST], row[g.FIRST] + row[g.SIZE]):
                shut[held.members[place]] = False
    if not flow.preempt(board, number, now, allowed, shut, chosen):
        return False
    for k in range(job[b.NODES]):
        on.hold(board, number, chosen[k])
    flow.begin(board, number, now)
    return True


@compiled
def cycle(  # noqa: C901 one compiled loop, as schedulers/easy.py
    board: Board, held: Groups, spans: Ints, events: Ints, notes: Notes, now: int, chosen: Ints
) -> Ints:
    """Try each job of the queue until the limits of the settings; returns the spans, for the next cycle."""
    settings, queued = board.settings, board.counters[b.QUEUED]
    most, of_user, starts = settings[b.MAX_TESTS], settings[b.MAX_OF_USER], settings[b.MAX_STARTS]
    reach = queued if of_user > 0 else min(queued, most)
    if not _any_may_fit(board, reach):
        return spans
    held.sizes[g.USED] = 0
    spans = g.with_room(held, spans, len(board.nodes) * len(board.reservations))
    g.gather(board, held, spans)
    this = held.sizes[g.CYCLE]
    tests = started = hopeful = 0
    for k in range(queued):
        hopeful = max(hopeful, k)
        while hopeful < reach:
            number = board.queue[hopeful]
            if not holds.is_held(board, number) and (
                _can_start(board, held, spans, notes, number, _clock(notes, number, now))
                or flow.can_preempt(board, number)
            ):
                break
            hopeful += 1
        if hopeful >= reach or tests >= most:
            break
        number = board.queue[k]
        job = board.jobs[number]
        if of_user > 0 and _of_user(notes, this, job) >= of_user:
            continue
        tests += 1
        if holds.is_held(board, number):
            continue
        here = _clock(notes, number, now)
        if hopeful == k:
            if _can_start(board, held, spans, notes, number, here):
                spans = g.with_room(held, spans, held.sizes[g.USED])
                _start(board, held, spans, number, here, chosen)
                started += 1
                if starts > 0 and started >= starts:
                    break
                continue
            if _preempts(board, held, spans, number, here, chosen):
                break
        if notes.late[job[b.LIKE]] != this:
            spans = _reserve(board, held, spans, notes, number, here, events, chosen)
    flow.tidy(board)
    return spans
