"""When running jobs are believed to end, and what nodes have then: compiled.

To whoever asks for later, what a completing job holds is free now, as it is to slurmctld, whose `deallocate_nodes`
gives it back at once; no job can start on it before its nodes' epilogs have ended.
"""

from gpuwaste.sim.compiled import in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm.board import Board, Ints


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
