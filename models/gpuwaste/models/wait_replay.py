"""A log's waits as rows to learn from and to judge: features, and what the queue simulation and the baselines expect.

The log is replayed in the order of time. Nothing that happens at the instant of a submission or later is known, not
even the start of a job submitted at the same time.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.job_table import Floats, JobTable
from gpuwaste.plan.start_time.scheduler_queue import NO_LIMIT_S
from gpuwaste.plan.wait_features import ROLLING, last_of_shape, rolling, simulated, vector
from gpuwaste.plan.wait_knowledge import JobRows, Knowledge, QueueInstant

Ints = NDArray[np.int64]
LAST: Final = "last wait of the same shape"
REQUEST: Final = "user's request simulated"
ROLLED: Final = {count: f"rolling quantile, last {count} of partition and size" for count in ROLLING}


class WaitRows(NamedTuple):
    """m submissions whose waits are known, in order: `features` [m, k] for the trees; seconds elsewhere.

    `simulated` [m, 3] are p10, p50 and p90; `baselines` the same by name.
    """

    submit: Ints
    start: Ints
    features: NDArray[np.float32]
    simulated: Floats
    baselines: dict[str, Floats]

    @property
    def waited(self) -> Floats:
        """Return the wait of each job [m]."""
        return (self.start - self.submit).astype(np.float64)


class WaitLog(NamedTuple):
    """n jobs by submission, start -1 for one that never started; `gone` is when each left the queue or the machine.

    `capacity` [P, 2] are the processors and the GPUs of each pool, `pools` the partitions' names.
    """

    jobs: JobRows
    gone: Ints
    capacity: Ints
    pools: tuple[str, ...]


def wait_rows(log: WaitLog, *, draws: int, every: int = 1, ticks: Iterable[object] | None = None) -> WaitRows:
    """Return each `every`-th submission that started, with what was known then. `ticks` is advanced per submission."""
    known, tick = Knowledge(), iter(ticks or ())
    rows: list[int] = []
    features: list[list[float]] = []
    played: list[list[float]] = []
    baselines: dict[str, list[list[float]]] = {}
    for seen in submissions(log, known):
        next(tick, None)
        if seen.row % every or log.jobs.start[seen.row] < 0:
            continue
        at = instant_of(log, seen)
        (hints,) = simulated(at, known.past, draws, seen.row)
        last = known.waits.last(at.asked, 0)
        said = {LAST: [last_of_shape(last)] * 3, REQUEST: [hints.to_the_limit] * 3}
        said |= {ROLLED[count]: quantiles for count, quantiles in rolling(last).items()}
        for name, found in said.items():
            baselines.setdefault(name, []).append(found)
        rows.append(seen.row)
        played.append([hints.p10, hints.p50, hints.p90])
        features.append(vector(at, 0, known, hints))
    return WaitRows(
        log.jobs.submit[rows],
        log.jobs.start[rows],
        np.array(features, np.float32),
        np.array(played, np.float64),
        {name: np.array(found) for name, found in baselines.items()},
    )


class SubmissionQueue(NamedTuple):
    """What is known when job `row` is submitted: running rows and waiting rows, of any pool, in order."""

    row: int
    running: Ints
    waiting: Ints


def wait_log(table: JobTable, processors: int | None) -> WaitLog:
    """Return the log of a table whose starts are known. A partition's size is the most that it held at once.

    With one partition the machine has the size in the log (`processors`). Jobs without processors are left out.
    """
    held = np.where(table.alloc_cpus >= 1, table.alloc_cpus, np.nan_to_num(table.cpus, nan=0.0))
    table = table.take(np.flatnonzero(held >= 1))
    procs = held[held >= 1].astype(np.int64)
    start, run = table.start.copy(), np.nan_to_num(table.run_s, nan=0.0).astype(np.int64)
    start[start < table.submit] = -1
    ended = np.where(table.end >= table.submit, table.end, table.submit)
    gone = np.where(start >= 0, start + run, ended)
    pool = table.partition.codes.astype(np.int64)
    limit = np.where(np.isfinite(table.limit_s) & (table.limit_s >= 1), table.limit_s, NO_LIMIT_S).astype(np.int64)
    jobs = JobRows(
        table.submit,
        start,
        procs,
        whole(table.gpus),
        np.minimum(limit, NO_LIMIT_S),
        table.user.codes.astype(np.int64),
        table.account.codes.astype(np.int64),
        pool,
        table.gpu_type.codes.astype(np.int64),
    )
    names = table.partition.values
    capacity = np.array([_capacity(jobs.at(pool == p), gone[pool == p]) for p in range(len(names))], np.int64)
    if len(names) == 1 and processors is not None:
        capacity[0, 0] = max(processors, int(procs.max()))
    return WaitLog(jobs, gone, capacity.reshape(len(names), 2), names)


def whole(amounts: Floats) -> Ints:
    """Return amounts as integers, 0 for an unknown one."""
    found: Ints = np.nan_to_num(amounts, nan=0.0).astype(np.int64)
    return found


def _capacity(jobs: JobRows, gone: Ints) -> tuple[int, int]:
    return max(most_held(jobs.start, gone, jobs.procs), 1), most_held(jobs.start, gone, jobs.gpus)


def most_held(start: Ints, gone: Ints, amounts: Ints) -> int:
    """Return the most that these jobs held at once, at least the request of each."""
    ran = start >= 0
    instants, changes = np.concatenate((start[ran], gone[ran])), np.concatenate((amounts[ran], -amounts[ran]))
    held = np.cumsum(changes[np.lexsort((changes, instants))])
    return int(max(held.max(initial=0), amounts[ran].max(initial=0)))


def submissions(log: WaitLog, known: Knowledge) -> Iterator[SubmissionQueue]:
    """Yield each submission in order; `known` has learnt from the starts and ends before it."""
    jobs = log.jobs
    starts: list[tuple[int, int]] = []
    ends: list[tuple[int, int]] = []
    running: dict[int, None] = {}
    waiting: dict[int, None] = {}
    for row, now in enumerate(jobs.submit.tolist()):
        begun = []
        while starts and starts[0][0] < now:
            job = heapq.heappop(starts)[1]
            del waiting[job]
            running[job] = None
            begun.append(job)
        if begun:
            known.started(jobs.at(np.array(begun, np.int64)))
        while ends and ends[0][0] < now:
            at, job = heapq.heappop(ends)
            if job in running:
                del running[job]
                known.ended(jobs, job, at)
            else:
                del waiting[job]
        yield SubmissionQueue(row, np.array(list(running), np.int64), np.array(list(waiting), np.int64))
        waiting[row] = None
        if jobs.start[row] >= 0:
            heapq.heappush(starts, (int(jobs.start[row]), row))
        heapq.heappush(ends, (int(log.gone[row]), row))


def instant_of(log: WaitLog, seen: SubmissionQueue) -> QueueInstant:
    """Return the pool of one submission at that instant."""
    own = log.jobs.pool[seen.row]
    running, waiting = (rows[log.jobs.pool[rows] == own] for rows in (seen.running, seen.waiting))
    return QueueInstant(
        int(log.jobs.submit[seen.row]),
        log.capacity[own],
        log.jobs.at(running),
        log.jobs.at(waiting),
        log.jobs.at(slice(seen.row, seen.row + 1)),
    )
