"""A queue at one instant as plain data: nodes, running and waiting jobs, queried requests; checked before simulation.

A pool is a group of nodes that are equal for the jobs (the nodes of the same partitions with one type of GPU); a job
runs within one of its pools, on as many nodes as it requests. R resources are counted on each node, in an order that
the caller chooses (CPUs, memory, GPUs). Where single nodes are not known (history), a pool is one node. Instants are
seconds from `SchedulerQueue.now`, which is UTC seconds. The check rejects what no cluster can have, and replaces
unknown limits.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import UsageError
from gpuwaste.core.units import DAY_S
from gpuwaste.sim.assoc_limits import LimitTable, no_limits

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
LEVELS: Final = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 1.0)
"""The levels of run time quantiles; the last is the run time that no run exceeds, at most the limit."""
MAX_POOLS: Final = 62  # bits of an int64 without the sign
MAX_JOBS: Final = 200_000  # of a queue; bounds memory and time
NO_LIMIT_S: Final = 366 * DAY_S  # assumed for a job without a limit
MAX_AMOUNT: Final = 1 << 52  # of a resource: sums of MAX_JOBS of bytes stay within int64 only below 2 ** 63
NOBODY: Final = (-1, -1, -1, 0, -1)


class Nodes(NamedTuple):
    """The machine: `capacity` [m, R] and `pool` [m] of each node, and when pools are closed.

    `closed` [w, 4]: pools as bits, the seconds from and until which they are closed, and the number of the reservation
    whose jobs may start there in that time (-1: none).
    """

    capacity: Ints
    pool: Ints
    closed: Ints


class QueueJobs(NamedTuple):
    """n jobs, waiting ones in the order of priority.

    `asks` [n, R] amounts on each of `nodes` [n]; `pools` [n] has a bit for each pool that the job may run in (where it
    runs); `limit_s` [n]; `run_s` [n, LEVELS] quantiles of the run time in seconds; `since_s` [n]: how long a job has
    run, or the seconds until it may start (--begin), 0 for at once. `reservation` [n] is the number of the one that it
    requests, -1 for none. `owner` [n, 5] has the owners whose limits apply: two QOS, the stronger first, and the
    association, by their places in the table of limits (-1: none), the number of the user, the place of the throttle
    (-1: none). `tres` [n, T] has the amounts that the limits count.
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
    """The scheduler's state at `now`; `depth` jobs are checked in a pass (bf_max_job_test).

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
    """One request: as a row of QueueJobs. `place` is its place among those that wait, None for behind all."""

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
    """Return requests as columns. Raises UsageError for rows of other widths."""
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
    """Return jobs of one pool that is one node, without limits."""
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


def checked(queue: SchedulerQueue) -> SchedulerQueue:
    """Return the queue, unknown limits set to NO_LIMIT_S. Raises UsageError for what no cluster can have."""
    machine = checked_nodes(queue.machine)
    if queue.depth < 1:
        raise UsageError(f"depth {queue.depth}: needs at least 1")
    queue = queue._replace(machine=machine, limits=queue.limits or nobody_is_limited())
    running = checked_jobs(queue.running, queue, "running")
    waiting = checked_jobs(queue.waiting, queue, "waiting")
    queue = queue._replace(running=running, waiting=waiting)
    return queue._replace(holdings=checked_holdings(queue) if queue.holdings else spread_holdings(queue))


def checked_nodes(machine: Nodes) -> Nodes:
    """Return the nodes in the format of compiled code. Raises UsageError."""
    capacity, pool, closed = machine
    if capacity.ndim != 2 or len(capacity) < 1 or capacity.shape[1] < 1:  # noqa: PLR2004 a matrix
        raise UsageError(f"machine: needs a node and a resource, has {capacity.shape}")
    if pool.shape != (len(capacity),) or pool.min() < 0 or pool.max() >= MAX_POOLS:
        raise UsageError(f"machine: needs 1 to {MAX_POOLS} pools, and one of them for each node")
    if closed.ndim != 2 or closed.shape[1] != 4:  # noqa: PLR2004 a matrix of four columns
        raise UsageError(f"machine: times closed are {closed.shape}, needs four columns")
    if (capacity < 0).any() or (capacity > MAX_AMOUNT).any():
        raise UsageError("machine: the amount of a resource is negative or too large")
    return Nodes(whole(capacity), whole(pool), whole(closed))


def checked_jobs(jobs: QueueJobs, queue: SchedulerQueue, what: str) -> QueueJobs:
    """Return jobs with every limit known and run times rising up to it. Raises UsageError, naming the first bad job."""
    n, width = len(jobs.limit_s), queue.machine.capacity.shape[1]
    limits = queue.limits or nobody_is_limited()
    if n > MAX_JOBS:
        raise UsageError(f"{n} {what} jobs: more than {MAX_JOBS}")
    expected = [(n, width), (n,), (n,), (n, len(LEVELS)), (n,), (n,), (n,), (n, len(NOBODY))]
    if [column.shape for column in jobs[:-1]] != expected or jobs.tres.shape != (n, limits.table.qos_tres.shape[2]):
        raise UsageError(f"{what} jobs: columns of different lengths {[column.shape for column in jobs]}")
    pools = int(queue.machine.pool.max()) + 1
    wrong = {
        "requests a negative amount": (jobs.asks < 0).any(axis=1),
        "requests an amount that no machine has": (jobs.asks > MAX_AMOUNT).any(axis=1),
        "names an unknown pool": (jobs.pools < 0) | (jobs.pools >= 1 << pools),
        "requests no node": jobs.nodes < 1,
        "has a run time that is not a number": ~np.isfinite(jobs.run_s).all(axis=1),
        "has a negative time": (jobs.since_s < 0) | (jobs.run_s < 0).any(axis=1),
        "has an unknown owner": ~_owners_known(jobs.owner, queue),
        "holds a negative amount of TRES": ~(jobs.tres >= 0).all(axis=1),
    }
    for reason, rows in wrong.items():
        for place in np.flatnonzero(rows):
            raise UsageError(f"{what} job {place}: {reason}")
    limit = np.where(jobs.limit_s < 1, NO_LIMIT_S, np.minimum(jobs.limit_s, NO_LIMIT_S))
    run = np.minimum(np.maximum.accumulate(jobs.run_s, axis=1), limit[:, None])
    since = np.minimum(jobs.since_s, NO_LIMIT_S)
    known = jobs._replace(limit_s=limit, run_s=run, since_s=since)
    return known.changed(lambda column: np.ascontiguousarray(column, dtype=_kind(column)))


def _kind(column: Ints | Floats) -> type[np.float64 | np.int64]:
    return np.float64 if column.dtype.kind == "f" else np.int64


def _owners_known(owner: Ints, queue: SchedulerQueue) -> NDArray[np.bool_]:
    limits = queue.limits or nobody_is_limited()
    most = (len(limits.table.qos_counts) - 1,) * 2 + (len(limits.table.parent), MAX_JOBS, len(limits.throttles))
    found: NDArray[np.bool_] = np.all((owner >= -1) & (owner < np.array(most)), axis=1)
    return found & (owner[:, 3] >= 0)


def checked_holdings(queue: SchedulerQueue) -> Holdings:
    """Return what running jobs hold, each row with a job and a node. Raises UsageError."""
    held = queue.holdings
    m, n = queue.machine.capacity.shape, len(queue.running.limit_s)
    if held is None or held.node.shape != held.job.shape or held.amounts.shape != (len(held.job), m[1]):
        raise UsageError("holdings: columns of different lengths")
    if ((held.node < 0) | (held.node >= m[0]) | (held.job < 0) | (held.job >= n)).any():
        raise UsageError("holdings: a job or a node that is not there")
    if ((held.amounts < 0) | (held.amounts > MAX_AMOUNT)).any():
        raise UsageError("holdings: an amount that is negative or too large")
    return Holdings(whole(held.job), whole(held.node), whole(held.amounts))


def spread_holdings(queue: SchedulerQueue) -> Holdings:
    """Return what running jobs hold on the first nodes of their pools. Raises UsageError for one in several pools."""
    jobs, pool = queue.running, queue.machine.pool
    for place in np.flatnonzero(np.bitwise_count(jobs.pools) != 1):
        raise UsageError(f"running job {place}: runs in {int(jobs.pools[place]):b}, needs exactly one pool")
    rows = [
        (job, int(node))
        for job, (bits, nodes) in enumerate(zip(jobs.pools.tolist(), jobs.nodes.tolist(), strict=True))
        for node in np.flatnonzero(pool == bits.bit_length() - 1)[:nodes]
    ]
    places = np.array(rows, np.int64).reshape(-1, 2)
    return Holdings(places[:, 0].copy(), places[:, 1].copy(), jobs.asks[places[:, 0]])


def whole(column: Ints) -> Ints:
    """Return a column in the format of compiled code: another width or order would be compiled again, for seconds."""
    return np.ascontiguousarray(column, dtype=np.int64)
