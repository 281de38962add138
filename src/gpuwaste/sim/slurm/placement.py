"""Which nodes a job fits on, what changes on them as it starts and ends, and the log of it: compiled.

A play without a log pays one comparison for each node that a job leaves. With one the play ends with the window, and
jobs that run then are added from what they hold.
"""

from typing import Final

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import holds
from gpuwaste.sim.slurm.best_fit import best_fit, none_usable, usable_cpus
from gpuwaste.sim.slurm.board import Board, Flags, Ints, PlacementLog

MOST_ROWS: Final = 50_000


@in_place
def enough(room: Ints, job: Ints) -> bool:
    """Return whether a row of free amounts has what a job requests of a node."""
    if room[b.FREE_CPUS] < job[b.CPUS] or room[b.FREE_MEMORY] < job[b.MEMORY]:
        return False
    if job[b.GPUS] == 0:
        return True
    of_type = b.FREE_GPUS if job[b.GPU_TYPE] < 0 else b.FIRST_TYPE + job[b.GPU_TYPE]
    found: bool = room[of_type] >= job[b.GPUS]
    return found


@in_place
def fits(node: Ints, job: Ints) -> bool:
    """Return whether a job can start on a node now."""
    if node[b.DOWN] > 0 or (job[b.WHOLE] and node[b.JOBS] > 0):
        return False
    return enough(node, job)


@in_place
def may_use(board: Board, reservation: int, job: Ints) -> bool:
    """Return whether a job's user or account may use a reservation."""
    found: bool = board.users[reservation, job[b.USER]] or board.accounts[reservation, job[b.ACCOUNT]]
    return found


@in_place
def open_classes(board: Board, number: int, now: int, shut: Flags, found: Flags) -> None:
    """Mark the classes that a job may start on now: in its partition, not `shut`, not reserved while it runs."""
    job = board.jobs[number]
    for k in range(len(board.idle)):
        found[k] = board.in_partition[job[b.PARTITION], k] and not shut[k]
    for r in range(len(board.reservations)):
        begin, end = board.reservations[r, 0], board.reservations[r, 1]
        if begin < now + job[b.BELIEVED] and end > now and not may_use(board, r, job):
            for k in range(len(board.idle)):
                if board.reserved[r, k]:
                    found[k] = False


@in_place
def may_fit(board: Board, job: Ints, allowed: Flags) -> bool:
    """Return whether some classes may have enough nodes for a job, by their counts; no promise that it fits."""
    cpus = min(job[b.CPUS], board.by_cpus.shape[1] - 1)
    gpus = min(job[b.GPUS], board.by_gpus.shape[1] - 1)
    missing: int = job[b.NODES]
    for k in range(len(board.idle)):
        if allowed[k]:
            found = min(board.by_cpus[k, cpus], board.by_gpus[k, gpus])
            missing -= min(found, board.idle[k]) if job[b.WHOLE] else found
    return missing <= 0


@in_place
def _usable(board: Board, job: Ints, allowed: Flags, chosen: Ints) -> int:
    """Fill `chosen` with all nodes of `allowed` classes that a job fits on; returns how many."""
    found = 0
    if may_fit(board, job, allowed):
        for node in range(len(board.nodes)):
            if allowed[board.nodes[node, b.CLASS]] and fits(board.nodes[node], job):
                chosen[found] = node
                found += 1
    return found


@compiled
def choose(board: Board, number: int, allowed: Flags, chosen: Ints) -> bool:
    """Fill `chosen` with the nodes that a job gets, of `allowed` classes; returns whether there are enough."""
    job = board.jobs[number]
    found, wanted = _usable(board, job, allowed, chosen), job[b.NODES]
    if found > wanted:
        free = none_usable(board.nodes)
        for k in range(found):
            free[chosen[k]] = usable_cpus(job, board.nodes[chosen[k], b.FREE_CPUS])
        best_fit(board.nodes, free, wanted, chosen)
    return bool(found >= wanted)


@in_place
def count_class(board: Board, node: int, sign: int) -> None:
    """Add a node to the counts of its class, or take it out of them."""
    row = board.nodes[node]
    if row[b.DOWN] > 0:
        return
    klass = row[b.CLASS]
    board.idle[klass] += sign if row[b.JOBS] == 0 else 0
    for k in range(min(row[b.FREE_CPUS] + 1, board.by_cpus.shape[1])):
        board.by_cpus[klass, k] += sign
    for k in range(min(row[b.FREE_GPUS] + 1, board.by_gpus.shape[1])):
        board.by_gpus[klass, k] += sign


@in_place
def hold(board: Board, number: int, node: int) -> None:
    """Give a job what it requests of a node: GPUs of any type in the order of types, all if exclusive (WHOLE)."""
    count_class(board, node, -1)
    job, row = board.jobs[number], board.nodes[node]
    place = board.counters[b.FREE_HOLDING]
    held = board.holdings[place]
    board.counters[b.FREE_HOLDING] = held[b.NEXT_OF_JOB]
    held[b.OF_JOB], held[b.OF_NODE] = number, node
    held[b.NEXT_OF_JOB], job[b.HELD] = job[b.HELD], place
    held[b.NEXT_OF_NODE], row[b.HOLDING] = row[b.HOLDING], place
    whole = job[b.WHOLE] == 1
    held[b.HELD_CPUS] = row[b.FREE_CPUS] if whole else job[b.CPUS]
    held[b.HELD_MEMORY] = row[b.FREE_MEMORY] if whole else job[b.MEMORY]
    left = row[b.FREE_GPUS] if whole else job[b.GPUS]
    for t in range(len(board.gpu_seconds)):
        given = 0
        if whole or job[b.GPU_TYPE] < 0 or job[b.GPU_TYPE] == t:
            given = min(left, row[b.FIRST_TYPE + t])
        left -= given
        held[b.HELD_TYPE + t] = given
        row[b.FIRST_TYPE + t] -= given
        row[b.FREE_GPUS] -= given
    row[b.FREE_CPUS] -= held[b.HELD_CPUS]
    row[b.FREE_MEMORY] -= held[b.HELD_MEMORY]
    row[b.JOBS] += 1
    count_class(board, node, 1)


@in_place
def release(board: Board, number: int, ran: int) -> None:
    """Take back all that a job holds, after it ran for some seconds."""
    job = board.jobs[number]
    place = job[b.HELD]
    while place >= 0:
        held = board.holdings[place]
        node = held[b.OF_NODE]
        count_class(board, node, -1)
        row = board.nodes[node]
        if row[b.HOLDING] == place:
            row[b.HOLDING] = held[b.NEXT_OF_NODE]
        else:
            before = row[b.HOLDING]
            while board.holdings[before, b.NEXT_OF_NODE] != place:
                before = board.holdings[before, b.NEXT_OF_NODE]
            board.holdings[before, b.NEXT_OF_NODE] = held[b.NEXT_OF_NODE]
        give_back(row, held)
        if len(board.log.rows) > 0:
            record(board, job[b.START], job[b.START] + ran, held)
        for t in range(len(board.gpu_seconds)):
            board.gpu_seconds[t] += held[b.HELD_TYPE + t] * ran
        count_class(board, node, 1)
        following = held[b.NEXT_OF_JOB]
        held[b.NEXT_OF_JOB] = board.counters[b.FREE_HOLDING]
        board.counters[b.FREE_HOLDING] = place
        place = following
    job[b.HELD] = -1
    job[b.RAN] = ran
    board.kinds[job[b.KIND], 2] -= 1
    holds.count(board, number, -1)
    board.left[board.counters[b.LEFT]] = number
    board.counters[b.LEFT] += 1


@in_place
def give_back(room: Ints, held: Ints) -> None:
    """Add what one job holds of a node to a row of free amounts."""
    room[b.JOBS] -= 1
    room[b.FREE_CPUS] += held[b.HELD_CPUS]
    room[b.FREE_MEMORY] += held[b.HELD_MEMORY]
    for t in range(len(held) - b.HELD_TYPE):
        room[b.FIRST_TYPE + t] += held[b.HELD_TYPE + t]
        room[b.FREE_GPUS] += held[b.HELD_TYPE + t]


@compiled
def no_classes(board: Board) -> Flags:
    """Return a flag for each class, none set."""
    return np.zeros(len(board.idle), np.bool_)


def no_log() -> PlacementLog:
    """Return the log of a play that is played to its end and keeps no placements."""
    return PlacementLog(
        np.empty((0, b.LOG_COLUMNS), np.int64), np.zeros(0, np.bool_), np.array([0, b.FOREVER], np.int64)
    )


def new_log(nodes: Flags, first: int, last: int) -> PlacementLog:
    """Return an empty log of these nodes [m] from `first` until `last`, UTC seconds."""
    return PlacementLog(
        np.empty((MOST_ROWS, b.LOG_COLUMNS), np.int64), nodes, np.array([first, max(last, first + 1)], np.int64)
    )


@in_place
def record(board: Board, start: int, end: int, held: Ints) -> None:
    """Log what a job held of a node, where the node is logged and any of that time is in the window."""
    log, node = board.log, held[b.OF_NODE]
    if not log.nodes[node] or start >= log.window[1] or end <= log.window[0]:
        return
    size = board.counters[b.LOGGED]
    if size == len(log.rows):
        board.counters[b.NOT_LOGGED] += 1
        return
    row = log.rows[size]
    row[b.LOG_NODE], row[b.LOG_JOB], row[b.LOG_FROM], row[b.LOG_UNTIL] = node, held[b.OF_JOB], start, end
    row[b.LOG_CPUS], row[b.LOG_GPUS] = held[b.HELD_CPUS], 0
    for t in range(len(board.gpu_seconds)):
        row[b.LOG_GPUS] += held[b.HELD_TYPE + t]
    board.counters[b.LOGGED] = size + 1


def logged(board: Board) -> Ints:
    """Return the rows of a play that has ended with its window, those of running jobs included, by node and start."""
    for node in np.flatnonzero(board.log.nodes):
        place = board.nodes[node, b.HOLDING]
        while place >= 0:
            held = board.holdings[place]
            job = board.jobs[held[b.OF_JOB]]
            record(board, job[b.START], job[b.START] + job[b.RUN], held)
            place = held[b.NEXT_OF_NODE]
    found = board.log.rows[: board.counters[b.LOGGED]]
    return found[np.lexsort((found[:, b.LOG_JOB], found[:, b.LOG_FROM], found[:, b.LOG_NODE]))]
