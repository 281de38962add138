"""Which nodes a job fits on, and what changes on them as it starts and ends: compiled."""

import numpy as np

from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.best_fit import best_fit, none_usable, usable_cpus
from gpuwaste.sim.slurm.board import Board, Flags, Ints


@compiled
def expected_end(job: Ints, now: int) -> int:
    """Return when a running job is believed to end: one that outlasts its walltime, by its limit."""
    end: int = job[b.START] + job[b.BELIEVED]
    if end <= now:
        end = max(job[b.START] + job[b.LIMIT], now + 1)
    return end


@compiled
def enough(room: Ints, job: Ints) -> bool:
    """Say whether a row of free amounts has what a job asks of a node."""
    if room[b.FREE_CPUS] < job[b.CPUS] or room[b.FREE_MEMORY] < job[b.MEMORY]:
        return False
    if job[b.GPUS] == 0:
        return True
    of_type = b.FREE_GPUS if job[b.GPU_TYPE] < 0 else b.FIRST_TYPE + job[b.GPU_TYPE]
    found: bool = room[of_type] >= job[b.GPUS]
    return found


@compiled
def fits(node: Ints, job: Ints) -> bool:
    """Say whether a job can start on a node now."""
    if node[b.DOWN] > 0 or (job[b.WHOLE] and node[b.JOBS] > 0):
        return False
    return enough(node, job)


@compiled
def may_use(board: Board, reservation: int, job: Ints) -> bool:
    """Say whether a job's user or account may use a reservation."""
    found: bool = board.users[reservation, job[b.USER]] or board.accounts[reservation, job[b.ACCOUNT]]
    return found


@compiled
def open_classes(board: Board, number: int, now: int, shut: Flags, found: Flags) -> None:
    """Mark the classes that a job may start on now: in its partition, not `shut`, not reserved while it runs."""
    job = board.jobs[number]
    for k in range(len(board.classes)):
        found[k] = board.in_partition[job[b.PARTITION], k] and not shut[k]
    for r in range(len(board.reservations)):
        begin, end = board.reservations[r, 0], board.reservations[r, 1]
        if begin < now + job[b.BELIEVED] and end > now and not may_use(board, r, job):
            for k in range(len(board.classes)):
                if board.reserved[r, k]:
                    found[k] = False


@compiled
def may_fit(board: Board, job: Ints, allowed: Flags) -> bool:
    """Say whether the sums of some classes have room for a job; no promise that it fits."""
    cpus = idle = roomy = gpus = 0
    for k in range(len(board.classes)):
        if allowed[k]:
            cpus += board.classes[k, b.CLASS_CPUS]
            idle += board.classes[k, b.CLASS_IDLE]
            roomy += board.classes[k, b.CLASS_ROOMY]
            gpus += board.classes[k, b.CLASS_GPUS]
    nodes = job[b.NODES]
    if nodes > roomy or nodes * job[b.CPUS] > cpus or nodes * job[b.GPUS] > gpus:
        return False
    return not (job[b.WHOLE] and nodes > idle)


@compiled
def choose(board: Board, number: int, allowed: Flags, chosen: Ints) -> bool:
    """Fill `chosen` with the nodes that a job gets, of `allowed` classes; returns whether there are enough."""
    job = board.jobs[number]
    if not may_fit(board, job, allowed):
        return False
    left, node = job[b.NODES], 0
    while left > 0 and node < len(board.nodes):
        left -= allowed[board.nodes[node, b.CLASS]] and fits(board.nodes[node], job)
        node += 1
    if left > 0:
        return False
    free = none_usable(board.nodes)
    for node in range(len(board.nodes)):
        if allowed[board.nodes[node, b.CLASS]] and fits(board.nodes[node], job):
            free[node] = usable_cpus(job, board.nodes[node, b.FREE_CPUS])
    best_fit(board.nodes, free, job[b.NODES], chosen)
    return True


@compiled
def count_class(board: Board, node: int, sign: int) -> None:
    """Add a node to the sums of its class, or take it out of them."""
    row = board.nodes[node]
    if row[b.DOWN] > 0:
        return
    sums = board.classes[row[b.CLASS]]
    sums[b.CLASS_CPUS] += sign * row[b.FREE_CPUS]
    sums[b.CLASS_IDLE] += sign if row[b.JOBS] == 0 else 0
    sums[b.CLASS_ROOMY] += sign if row[b.FREE_CPUS] > 0 else 0
    sums[b.CLASS_GPUS] += sign * row[b.FREE_GPUS]


@compiled
def hold(board: Board, number: int, node: int) -> None:
    """Give a job what it asks of a node: GPUs of any type in the order of types, all to one that takes it whole."""
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


@compiled
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
    board.left[board.counters[b.LEFT]] = number
    board.counters[b.LEFT] += 1


@compiled
def give_back(room: Ints, held: Ints) -> None:
    """Add what one job holds of a node to a row of free amounts."""
    room[b.JOBS] -= 1
    room[b.FREE_CPUS] += held[b.HELD_CPUS]
    room[b.FREE_MEMORY] += held[b.HELD_MEMORY]
    for t in range(len(held) - b.HELD_TYPE):
        room[b.FIRST_TYPE + t] += held[b.HELD_TYPE + t]
        room[b.FREE_GPUS] += held[b.HELD_TYPE + t]


@compiled
def free_from(board: Board, node: int, job: Ints, now: int, room: Ints) -> int:  # noqa: C901 one compiled loop, as schedulers/easy.py
    """Return when a node is believed to have what a job asks of it, FOREVER for never; `room` is overwritten."""
    row = board.nodes[node]
    if row[b.DOWN] > 0 or not enough(board.full[node], job):
        return b.FOREVER
    if fits(row, job):
        return now
    if row[b.JOBS] == 1:
        return expected_end(board.jobs[board.holdings[row[b.HOLDING], b.OF_JOB]], now)
    for column in range(len(row)):
        room[column] = row[column]
    passed = now
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
                give_back(room, held)
            place = held[b.NEXT_OF_NODE]
        if fits(room, job):
            return passed


@compiled
def next_end(board: Board, node: int, now: int) -> int:
    """Return when the first job on a node is believed to end, FOREVER for an idle one."""
    found, place = b.FOREVER, board.nodes[node, b.HOLDING]
    while place >= 0:
        found = min(found, expected_end(board.jobs[board.holdings[place, b.OF_JOB]], now))
        place = board.holdings[place, b.NEXT_OF_NODE]
    return found


@compiled
def last_end(board: Board, node: int, now: int, until: int) -> int:
    """Return the last instant, not after `until`, at which a job on a node is believed to end; -1 for none."""
    found, place = -1, board.nodes[node, b.HOLDING]
    while place >= 0:
        end = expected_end(board.jobs[board.holdings[place, b.OF_JOB]], now)
        if found < end <= until:
            found = end
        place = board.holdings[place, b.NEXT_OF_NODE]
    return found


@compiled
def free_cpus_at(board: Board, node: int, now: int, start: int) -> int:
    """Return how many CPUs of a node are believed to be free at an instant."""
    found: int = board.nodes[node, b.FREE_CPUS]
    place = board.nodes[node, b.HOLDING]
    while place >= 0 and start > now:
        held = board.holdings[place]
        if expected_end(board.jobs[held[b.OF_JOB]], now) <= start:
            found += held[b.HELD_CPUS]
        place = held[b.NEXT_OF_NODE]
    return found


@compiled
def no_classes(board: Board) -> Flags:
    """Return a flag for each class, none set."""
    return np.zeros(len(board.classes), np.bool_)
