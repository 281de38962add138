"""Expected ends of running jobs, looked at a window at once, as slurmctld does: compiled.

Source: `_will_run_test` of Slurm 22.05's select plugins. Running jobs of the cluster are taken away in the order of
their expected ends; those on none of the job's nodes are passed over. After one that was taken away the window ends if
the next job, passed over or not, ends beyond it. So the first job taken after some that are passed over belongs to the
window, however late it ends. The job is tried at the end of a window, and each window is at least twice as long.
"""

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import groups as g
from gpuwaste.sim.slurm.board import Board, Flags
from gpuwaste.sim.slurm.expected import expected_end
from gpuwaste.sim.slurm.groups import Groups

_JOB_BITS = 32  # an end is its time, the job and whether the job is on usable nodes, in one integer that sorts by time


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
