"""Jobs that enter the queue, start, end, and are ended early, and the main loop by strict priority: compiled."""

import numpy as np

from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.ends import pop, push
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import holds
from gpuwaste.sim.slurm import placement as on
from gpuwaste.sim.slurm.board import Board, Flags, Ints


@in_place
def ahead(one: Ints, number: int, other: Ints, than: int) -> bool:
    """Return whether a job is tried before another: by priority tier, then priority, then its number."""
    if one[b.TIER] != other[b.TIER]:
        return bool(one[b.TIER] > other[b.TIER])
    if one[b.PRIORITY] != other[b.PRIORITY]:
        return bool(one[b.PRIORITY] > other[b.PRIORITY])
    return number < than


@in_place
def enqueue(board: Board, number: int) -> None:
    """Put a job into the queue."""
    job, first, last = board.jobs[number], 0, board.counters[b.QUEUED]
    job[b.STATE] = b.WAITING
    board.counters[b.CHANGES] += 1
    while first < last:
        middle = (first + last) // 2
        other = board.queue[middle]
        if ahead(board.jobs[other], other, job, number):
            first = middle + 1
        else:
            last = middle
    for k in range(board.counters[b.QUEUED], first, -1):
        board.queue[k] = board.queue[k - 1]
    board.queue[first] = number
    board.counters[b.QUEUED] += 1


@in_place
def tidy(board: Board) -> None:
    """After a pass: take jobs that have started out of the queue, and put back those that are requeued."""
    kept = 0
    for k in range(board.counters[b.QUEUED]):
        number = board.queue[k]
        if board.jobs[number, b.STATE] == b.WAITING:
            board.queue[kept] = number
            kept += 1
    board.counters[b.QUEUED] = kept
    for k in range(board.counters[b.RETURNED]):
        enqueue(board, board.returned[k])
    board.counters[b.RETURNED] = 0


@in_place
def begin(board: Board, number: int, now: int) -> None:
    """Start a job, which holds its nodes."""
    job = board.jobs[number]
    job[b.START], job[b.STATE] = now, b.RUNNING
    board.kinds[job[b.KIND], 2] += 1
    holds.count(board, number, 1)
    board.counters[b.CHANGES] += 1
    size = board.counters[b.ENDS]
    if size == len(board.end_times):  # most of them are outdated
        kept = 0
        for k in range(size):
            time, other = board.end_times[k], board.end_jobs[k]
            if is_end(board, other, time):
                kept = push(board.end_times, board.end_jobs, kept, time, other)
        size = kept
    board.counters[b.ENDS] = push(board.end_times, board.end_jobs, size, now + job[b.RUN], number)


@in_place
def is_end(board: Board, number: int, time: int) -> bool:
    """Return whether an entry of the heap is the end of a running job, not of a run that was cut short."""
    job = board.jobs[number]
    return bool(job[b.STATE] == b.RUNNING and job[b.START] + job[b.RUN] == time)


@in_place
def next_end(board: Board) -> int:
    """Return the next end, FOREVER for none; skips ends that are outdated."""
    while board.counters[b.ENDS] > 0:
        time = board.end_times[0]
        if is_end(board, board.end_jobs[0], time):
            return int(time)
        board.counters[b.ENDS] = pop(board.end_times, board.end_jobs, board.counters[b.ENDS])
    return b.FOREVER


@in_place
def end_next(board: Board) -> int:
    """End the job that next_end() has found; returns it."""
    number = board.end_jobs[0]
    board.counters[b.ENDS] = pop(board.end_times, board.end_jobs, board.counters[b.ENDS])
    end(board, number)
    return int(number)


@in_place
def complete(board: Board, number: int) -> None:
    """Let a running job complete, while it still holds its part of its nodes until `end`."""
    board.jobs[number, b.STATE] = b.COMPLETING
    board.counters[b.CHANGES] += 1


@in_place
def end(board: Board, number: int) -> None:
    """End a running job, which has run its full time, and free its nodes."""
    board.jobs[number, b.STATE] = b.ENDED
    board.counters[b.CHANGES] += 1
    on.release(board, number, board.jobs[number, b.RUN])


@in_place
def send_away(board: Board, number: int, now: int, requeues: bool) -> None:
    """End a running job before its time: it waits once more from the end of the pass on, or has ended."""
    job = board.jobs[number]
    on.release(board, number, now - job[b.START])
    board.counters[b.CHANGES] += 1
    board.counters[b.FREED] += 1
    job[b.STATE] = b.ENDED
    if requeues:
        job[b.STATE] = b.FUTURE
        job[b.REQUEUED] += 1
        board.returned[board.counters[b.RETURNED]] = number
        board.counters[b.RETURNED] += 1


@in_place
def can_preempt(board: Board, number: int) -> bool:
    """Return whether any job runs that a job may preempt."""
    kind = board.jobs[number, b.KIND]
    for victim in range(len(board.kinds)):  # noqa: SIM110 compiled: any() of a generator is not
        if board.preempts[kind, victim] and board.kinds[victim, 2] > 0:
            return True
    return False


@compiled
def _victims(board: Board, kind: int) -> Ints:
    """Return running jobs that a kind may preempt: the lowest rank first, then the latest start, the last number."""
    runs = 0
    for victim in range(len(board.kinds)):
        if board.preempts[kind, victim]:
            runs += board.kinds[victim, 2]
    found, count = np.empty(runs, np.int64), 0
    for node in range(len(board.nodes)):
        place = board.nodes[node, b.HOLDING]
        while place >= 0:
            number = board.holdings[place, b.OF_JOB]
            # A job is met once on each of its nodes; it counts at its first holding.
            if board.jobs[number, b.HELD] == place and board.preempts[kind, board.jobs[number, b.KIND]]:
                found[count] = number
                count += 1
            place = board.holdings[place, b.NEXT_OF_NODE]
    found = np.sort(found)[::-1].copy()
    starts = np.empty(runs, np.int64)
    for k in range(runs):
        starts[k] = -board.jobs[found[k], b.START]
    found = found[np.argsort(starts, kind="mergesort")]
    for k in range(runs):
        starts[k] = board.kinds[board.jobs[found[k], b.KIND], 0]
    return found[np.argsort(starts, kind="mergesort")]


@compiled
def preempt(board: Board, number: int, now: int, allowed: Flags, shut: Flags, chosen: Ints) -> bool:  # noqa: C901 one compiled loop, as schedulers/easy.py
    """Preempt jobs, one after another, until a job fits; those that are on none of its nodes are spared.

    `allowed` are classes, `shut` nodes that are not to be used. Fills `chosen`; returns whether the job fits.
    """
    job = board.jobs[number]
    if not can_preempt(board, number):
        return False
    victims, nodes, count, used = _victims(board, job[b.KIND]), board.nodes.copy(), 0, 0
    for node in range(len(nodes)):
        count += allowed[nodes[node, b.CLASS]] and not shut[node] and on.fits(nodes[node], job)
    while count < job[b.NODES]:
        if used == len(victims):
            return False
        place = board.jobs[victims[used], b.HELD]
        while place >= 0:
            held = board.holdings[place]
            row = nodes[held[b.OF_NODE]]
            usable = allowed[row[b.CLASS]] and not shut[held[b.OF_NODE]]
            before = on.fits(row, job)
            on.give_back(row, held)
            count += usable and not before and on.fits(row, job)
            place = held[b.NEXT_OF_JOB]
        used += 1
    found = 0
    wanted = np.zeros(len(nodes), np.bool_)
    for node in range(len(nodes)):
        if found < job[b.NODES] and allowed[nodes[node, b.CLASS]] and not shut[node] and on.fits(nodes[node], job):
            chosen[found] = node
            wanted[node] = True
            found += 1
    for k in range(used):
        place, hit = board.jobs[victims[k], b.HELD], False
        while place >= 0:
            hit = hit or wanted[board.holdings[place, b.OF_NODE]]
            place = board.holdings[place, b.NEXT_OF_JOB]
        if hit:
            send_away(board, victims[k], now, board.kinds[board.jobs[victims[k], b.KIND], 1] == 1)
    return True


@compiled
def try_now(board: Board, number: int, now: int, shut: Flags, allowed: Flags, chosen: Ints) -> bool:
    """Start a job where it fits outside the classes that are shut, or may preempt; returns whether it started."""
    on.open_classes(board, number, now, shut, allowed)
    if not on.choose(board, number, allowed, chosen):
        nowhere = np.zeros(len(board.nodes) if can_preempt(board, number) else 0, np.bool_)
        if len(nowhere) == 0 or not preempt(board, number, now, allowed, nowhere, chosen):
            return False
    for k in range(board.jobs[number, b.NODES]):
        on.hold(board, number, chosen[k])
    begin(board, number, now)
    return True


@compiled
def main_pass(board: Board, now: int, depth: int, chosen: Ints) -> None:
    """Try the first `depth` jobs of the queue."""
    shut, allowed = on.no_classes(board), on.no_classes(board)
    failed = np.zeros(len(board.in_partition), np.bool_)
    left = len(failed)
    for k in range(min(depth, board.counters[b.QUEUED])):
        number = board.queue[k]
        partition = board.jobs[number, b.PARTITION]
        if failed[partition] or holds.is_held(board, number) or try_now(board, number, now, shut, allowed, chosen):
            continue
        failed[partition] = True
        left -= 1
        if left == 0:
            break
        for klass in range(len(shut)):
            shut[klass] = shut[klass] or board.in_partition[partition, klass]
    tidy(board)
