"""When running jobs are believed to end, what nodes have then, and these ends a window at a time: compiled.

To whoever asks for later, what a completing job holds is free now, as it is to slurmctld, whose `deallocate_nodes`
gives it back at once; no job can start on it before its nodes' epilogs have ended.

Source: `_will_run_test` of Slurm 22.05's select plugins. Running jobs of the cluster are taken away in the order of
their expected ends; those on none of the job's nodes are passed over. After one that was taken away the window ends if
the next job, passed over or not, ends beyond it. So the first job taken after some that are passed over belongs to the
window, however late it ends. The job is tried at the end of a window, and each window is at least twice as long.
"""

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import groups as g
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm.board import Board, Flags, Ints
from gpuwaste.sim.slurm.groups import Groups

_JOB_BITS = 32  # an end is its time, the job and whether the job is on usable nodes, in one integer that sorts by time


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
    """Return when a node is believed to have what a job asks of it, FOREVER for never; `room` is overwritten."""
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
            if board.jobs[number, b.STATE] == b.COMPLETING:  # is no running job any more
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

    They have at `enough`, which is an expected end of a job on them.
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
