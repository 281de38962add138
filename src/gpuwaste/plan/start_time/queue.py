"""A queue at one instant as plain data: the machine's nodes, what runs, what waits, what is asked for.

A pool is a group of nodes that are alike to the jobs (the nodes of the same partitions with one type of GPU); a job
runs within one of its pools, on as many nodes as it asks for. R resources are counted on each node, in an order that
the caller chooses (CPUs, memory, GPUs). Where single nodes are not known (history), a pool is one node. Instants are
seconds from `Queue.now`, which is UTC seconds.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import UsageError
from gpuwaste.core.units import DAY_S
from gpuwaste.sim.limits import LimitTable, no_limits

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LEVELS: Final = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0)
"""Shares of jobs at which run times are described; the last is what no run exceeds, at most the limit."""
MAX_POOLS: Final = 62  # bits of an int64 that are no sign
MAX_JOBS: Final = 200_000  # of a queue; bounds memory and time
NO_LIMIT_S: Final = 366 * DAY_S  # what is planned for a job that may run for ever
MAX_AMOUNT: Final = 1 << 52  # of a resource: sums of MAX_JOBS of bytes stay within int64 only below 2 ** 63
NOBODY: Final = (-1, -1, -1, 0, -1)


class Nodes(NamedTuple):
    """The machine: `capacity` [m, R] and `pool` [m] of each node, and when pools are closed.

    `closed` [w, 4]: pools as bits, the seconds from and until which they are closed, and the number of the reservation
    whose jobs may start there meanwhile (-1: none).
    """

    capacity: Ints
    pool: Ints
    closed: Ints


class QueueJobs(NamedTuple):
    """n jobs, those that wait in the order of priority.

    `asks` [n, R] amounts on each of `nodes` [n]; `pools` [n] has a bit for each pool that the job may run in (where it
    runs); `limit_s` [n]; `run_s` [n, LEVELS] quantiles of the run time in seconds; `since_s` [n]: how long a job has
    run, or the seconds until it may start (--begin), 0 for at once. `reservation` [n] is the number of the one that it
    asks for, -1 for none. `owner` [n, 5] says whose limits hold: two QOS, the stronger first, and the association, by
    their places in the table of limits (-1: none), the number of the user, the place of the throttle (-1: none). `tres`
    [n, T] is what the limits count.
    """

    asks: Ints
    pools: Ints
    limit_s: Ints
    run_s: Floats
    since_s: Ints
    nodes: Ints
    reservation: Ints
    owner: Ints
    tres: Floats

    def changed(self, change: Callable[[Any], Any]) -> Self:
        """Return the rows with each column changed."""
        return type(self)(*(change(column) for column in self))


class Holdings(NamedTuple):
    """What running jobs hold [h]: the job and the node by their numbers, and amounts [h, R]."""

    job: Ints
    node: Ints
    amounts: Ints


class QueueLimits(NamedTuple):
    """Limits of QOS and associations, and the most tasks at once [t] of each array that has a throttle."""

    table: LimitTable
    throttles: Ints


class SchedulerQueue(NamedTuple):
    """What the scheduler has before it at `now`; `depth` jobs are looked at in a pass (bf_max_job_test).

    Without `holdings` a running job holds the first nodes of its only pool.
    """

    now: int
    machine: Nodes
    running: QueueJobs
    waiting: QueueJobs
    depth: int = 500
    backfills: bool = True
    holdings: Holdings | None = None
    limits: QueueLimits | None = None


class QueuedRequest(NamedTuple):
    """One request: as a row of Jobs. `place` is its place among those that wait, None for behind all."""

    asks: Sequence[int]
    pools: int
    limit_s: int
    run_s: Sequence[float]
    begin_s: int = 0
    place: int | None = None
    nodes: int = 1
    reservation: int = -1
    owner: tuple[int, int, int, int, int] = NOBODY
    tres: Sequence[float] = ()


def jobs_of(rows: Sequence[QueuedRequest], resources: int, tres: int = 0) -> QueueJobs:
    """Return requests as Jobs. Raises UsageError for rows of other widths."""
    for place, row in enumerate(rows):
        if len(row.asks) != resources or len(row.run_s) != len(LEVELS):
            raise UsageError(f"request {place}: needs {resources} amounts and {len(LEVELS)} run times")
        if len(row.tres) not in {0, tres}:
            raise UsageError(f"request {place}: needs {tres} amounts of TRES")
    none = (0.0,) * tres
    return QueueJobs(
        np.array([row.asks for row in rows], np.int64).reshape(-1, resources),
        np.array([row.pools for row in rows], np.int64),
        np.array([row.limit_s for row in rows], np.int64),
        np.array([row.run_s for row in rows], np.float64).reshape(-1, len(LEVELS)),
        np.array([row.begin_s for row in rows], np.int64),
        np.array([row.nodes for row in rows], np.int64),
        np.array([row.reservation for row in rows], np.int64),
        np.array([row.owner for row in rows], np.int64).reshape(-1, len(NOBODY)),
        np.array([row.tres or none for row in rows], np.float64).reshape(len(rows), tres),
    )


def jobs_in_pools(asks: Ints, limit_s: Ints, run_s: Floats, since_s: Ints) -> QueueJobs:
    """Return jobs of one pool that is one node, of nobody whom limits concern."""
    n = len(limit_s)
    ones = np.ones(n, np.int64)
    owner = np.tile(np.array(NOBODY, np.int64), (n, 1))
    return QueueJobs(asks, ones, limit_s, run_s, since_s, ones, -ones, owner, np.empty((n, 0)))


def one_node_each(capacity: Ints) -> Nodes:
    """Return a machine whose pools [P, R] are one node each and always open."""
    return Nodes(capacity, np.arange(len(capacity)), np.empty((0, 4), np.int64))


def nobody_is_limited() -> QueueLimits:
    """Return limits that hold nobody back."""
    return QueueLimits(no_limits(), np.empty(0, np.int64))
