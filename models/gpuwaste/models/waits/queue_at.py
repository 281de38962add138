"""A log played in the order of time: at each submission, the jobs that run and wait, and what has been learnt by then.

Nothing that happens at the instant of a submission or later is known: not the start of a job that is submitted with it.
"""

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.history.table import JobTable
from gpuwaste.plan.when.expectation import closed_never
from gpuwaste.plan.when.past_runs import PastRuns
from gpuwaste.plan.when.queue import LEVELS, NO_LIMIT_S, Jobs, Pools, Queue

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class WaitLog(NamedTuple):
    """n jobs by submission: UTC seconds, -1 for a start that never came; `pool` is the partition's number.

    `gone` is when a job left the queue or the machine.
    """

    submit: Ints
    start: Ints
    gone: Ints
    procs: Ints
    limit: Ints
    user: Ints
    account: Ints
    pool: Ints
    capacity: Ints


class Submission(NamedTuple):
    """What is known as job `row` is submitted: rows that run, rows that wait (by submission), rows that just started.

    `started` and `ended` hold what has happened since the submission before.
    """

    row: int
    running: Ints
    waiting: Ints
    started: list[int]


def wait_log(table: JobTable, processors: int | None) -> WaitLog:
    """Return the log of a table whose starts are known. A partition is as large as the most that it held at once.

    With one partition the machine is as large as the log says (`processors`). Jobs without processors are left out.
    """
    held = np.where(table.alloc_cpus >= 1, table.alloc_cpus, np.nan_to_num(table.cpus, nan=0.0))
    table = table.take(np.flatnonzero(held >= 1))
    procs = held[held >= 1].astype(np.int64)
    start, run = table.start.copy(), np.nan_to_num(table.run_s, nan=0.0).astype(np.int64)
    start[start < table.submit] = -1
    ended = np.where(table.end >= table.submit, table.end, table.submit)
    gone = np.where(start >= 0, start + run, ended)
    pool = table.partition.codes.astype(np.int64)
    capacity = np.array([most_held(start, gone, procs, pool == p) for p in range(len(table.partition.values))])
    if len(capacity) == 1 and processors is not None:
        capacity[0] = max(processors, int(procs.max()))
    limit = np.where(np.isfinite(table.limit_s) & (table.limit_s >= 1), table.limit_s, NO_LIMIT_S).astype(np.int64)
    users = (table.user.codes.astype(np.int64), table.account.codes.astype(np.int64))
    return WaitLog(table.submit, start, gone, procs, limit, *users, pool, capacity)


def most_held(start: Ints, gone: Ints, procs: Ints, rows: NDArray[np.bool_]) -> int:
    """Return the most processors that these jobs held at once, at least 1."""
    rows = rows & (start >= 0)
    instants, changes = np.concatenate((start[rows], gone[rows])), np.concatenate((procs[rows], -procs[rows]))
    held = np.cumsum(changes[np.lexsort((changes, instants))])
    return int(max(held.max(initial=1), procs[rows].max(initial=1)))


def submissions(log: WaitLog, past: PastRuns) -> Iterator[Submission]:
    """Yield each submission in order; `past` has learnt from the jobs that had ended by then."""
    starts: list[tuple[int, int]] = []
    ends: list[tuple[int, int]] = []
    running: dict[int, None] = {}
    waiting: dict[int, None] = {}
    for row in range(len(log.submit)):
        now = int(log.submit[row])
        begun = []
        while starts and starts[0][0] < now:
            job = heapq.heappop(starts)[1]
            del waiting[job]
            running[job] = None
            begun.append(job)
        while ends and ends[0][0] < now:
            job = heapq.heappop(ends)[1]
            if job in running:
                del running[job]
                shape = (int(log.procs[job]), int(log.limit[job]))
                past.observe(int(log.user[job]), shape, log.gone[job] - log.start[job], log.limit[job])
            else:
                del waiting[job]
        yield Submission(row, np.array(list(running), np.int64), np.array(list(waiting), np.int64), begun)
        waiting[row] = None
        if log.start[row] >= 0:
            heapq.heappush(starts, (int(log.start[row]), row))
        heapq.heappush(ends, (int(log.gone[row]), row))


def queue_of(log: WaitLog, seen: Submission, past: PastRuns) -> Queue:
    """Return the queue of one submission's pool."""
    own = log.pool[seen.row]
    machine: Pools = closed_never(log.capacity[own : own + 1, None])
    now = int(log.submit[seen.row])
    running, waiting = (rows[log.pool[rows] == own] for rows in (seen.running, seen.waiting))
    return Queue(
        now,
        machine,
        jobs_of_rows(log, running, past, now - log.start[running]),
        jobs_of_rows(log, waiting, past, np.zeros(len(waiting), np.int64)),
    )


def jobs_of_rows(log: WaitLog, rows: Ints, past: PastRuns, since_s: Ints) -> Jobs:
    """Return rows of the log with the run times that are expected of them."""
    run = [past.quantiles(int(log.user[j]), (int(log.procs[j]), int(log.limit[j])), int(log.limit[j])) for j in rows]
    return Jobs(
        log.procs[rows, None],
        np.ones(len(rows), np.int64),
        log.limit[rows],
        np.array(run).reshape(len(rows), len(LEVELS)),
        np.maximum(since_s, 0),
    )
