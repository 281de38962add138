"""A queue at one instant as plain data: the machine's pools, what runs, what waits, what is asked for.

A pool is a group of nodes that are alike to the jobs (a partition's nodes of one GPU type); R resources are counted in
each, in an order that the caller chooses (nodes, CPUs, memory, GPUs). A job runs within one of its pools. Instants are
seconds from `Queue.now`, which is UTC seconds.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import UsageError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LEVELS: Final = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0)
"""Shares of jobs at which run times are described; the last is what no run exceeds, at most the limit."""
MAX_POOLS: Final = 62  # bits of an int64 that are no sign
MAX_JOBS: Final = 200_000  # of a queue; bounds memory and time
NO_LIMIT_S: Final = 366 * 86400  # what is planned for a job that may run for ever
MAX_AMOUNT: Final = 1 << 52  # of a resource: sums of MAX_JOBS of bytes stay within int64 only below 2 ** 63


class Pools(NamedTuple):
    """The machine: `capacity` [P, R], and the seconds [P, 2] from and until which a pool is closed (0, 0: never)."""

    capacity: Ints
    closed: Ints


class Jobs(NamedTuple):
    """n jobs, those that wait in the order of priority.

    `asks` [n, R] amounts; `pools` [n] has a bit for each pool that the job may run in (one bit for one that runs);
    `limit_s` [n]; `run_s` [n, LEVELS] quantiles of the run time in seconds; `since_s` [n]: how long a job has run, or
    the seconds until it may start (--begin), 0 for at once.
    """

    asks: Ints
    pools: Ints
    limit_s: Ints
    run_s: Floats
    since_s: Ints


class Queue(NamedTuple):
    """What the scheduler has before it at `now`; `depth` jobs are looked at in a pass (bf_max_job_test)."""

    now: int
    machine: Pools
    running: Jobs
    waiting: Jobs
    depth: int = 500
    backfills: bool = True


class Candidate(NamedTuple):
    """One request: as a row of Jobs. `place` is its place among those that wait, None for behind all."""

    asks: Sequence[int]
    pools: int
    limit_s: int
    run_s: Sequence[float]
    begin_s: int = 0
    place: int | None = None


def no_jobs(resources: int) -> Jobs:
    """Return an empty list of jobs."""
    none = np.empty(0, np.int64)
    return Jobs(np.empty((0, resources), np.int64), none, none, np.empty((0, len(LEVELS))), none)


def jobs_of(rows: Sequence[Candidate], resources: int) -> Jobs:
    """Return requests as Jobs. Raises UsageError for rows of other widths."""
    if not rows:
        return no_jobs(resources)
    for place, row in enumerate(rows):
        if len(row.asks) != resources or len(row.run_s) != len(LEVELS):
            raise UsageError(f"request {place}: needs {resources} amounts and {len(LEVELS)} run times")
    return Jobs(
        np.array([row.asks for row in rows], np.int64),
        np.array([row.pools for row in rows], np.int64),
        np.array([row.limit_s for row in rows], np.int64),
        np.array([row.run_s for row in rows], np.float64),
        np.array([row.begin_s for row in rows], np.int64),
    )


def checked(queue: Queue) -> Queue:
    """Return the queue with unknown limits made NO_LIMIT_S. Raises UsageError for what no cluster can have."""
    capacity, closed = queue.machine
    if capacity.ndim != 2 or not 0 < capacity.shape[0] <= MAX_POOLS or capacity.shape[1] < 1:  # noqa: PLR2004 a matrix
        raise UsageError(f"machine: needs 1 to {MAX_POOLS} pools and a resource, has {capacity.shape}")
    if closed.shape != (len(capacity), 2):
        raise UsageError(f"machine: times closed are {closed.shape}, needs {(len(capacity), 2)}")
    if (capacity < 0).any() or (capacity > MAX_AMOUNT).any():
        raise UsageError("machine: the amount of a resource is negative or too large")
    if queue.depth < 1:
        raise UsageError(f"depth {queue.depth}: needs at least 1")
    running, waiting = (
        checked_jobs(jobs, capacity.shape, what)
        for jobs, what in ((queue.running, "running"), (queue.waiting, "waiting"))
    )
    for place in np.flatnonzero(np.bitwise_count(running.pools) != 1):
        raise UsageError(f"running job {place}: runs in {int(running.pools[place]):b}, needs exactly one pool")
    return queue._replace(machine=Pools(whole(capacity), whole(closed)), running=running, waiting=waiting)


def checked_jobs(jobs: Jobs, shape: tuple[int, ...], what: str) -> Jobs:
    """Return jobs with every limit known and run times that rise up to it. Raises UsageError, naming the first."""
    n = len(jobs.limit_s)
    if n > MAX_JOBS:
        raise UsageError(f"{n} {what} jobs: more than {MAX_JOBS}")
    found = (jobs.asks.shape, jobs.pools.shape, jobs.run_s.shape, jobs.since_s.shape)
    if found != ((n, shape[1]), (n,), (n, len(LEVELS)), (n,)):
        raise UsageError(f"{what} jobs: columns of different lengths {found}")
    wrong = {
        "asks for a negative amount": (jobs.asks < 0).any(axis=1),
        "asks for an amount that no machine has": (jobs.asks > MAX_AMOUNT).any(axis=1),
        "names a pool that is not there": (jobs.pools < 0) | (jobs.pools >= 1 << shape[0]),
        "has a run time that is no number": ~np.isfinite(jobs.run_s).all(axis=1),
        "has a negative time": (jobs.since_s < 0) | (jobs.run_s < 0).any(axis=1),
    }
    for reason, rows in wrong.items():
        for place in np.flatnonzero(rows):
            raise UsageError(f"{what} job {place}: {reason}")
    limit = np.where(jobs.limit_s < 1, NO_LIMIT_S, np.minimum(jobs.limit_s, NO_LIMIT_S))
    run = np.minimum(np.maximum.accumulate(jobs.run_s, axis=1), limit[:, None])
    since = np.minimum(jobs.since_s, NO_LIMIT_S)
    return Jobs(whole(jobs.asks), whole(jobs.pools), whole(limit), run, whole(since))


def whole(column: Ints) -> Ints:
    """Return a column as compiled code takes it: another width or order would be compiled anew, for seconds."""
    return np.ascontiguousarray(column, dtype=np.int64)
