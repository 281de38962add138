"""A queue that compiled code may play: what no cluster can have is refused, what is unknown gets its value."""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import UsageError
from gpuwaste.plan.start_time.queue import (
    LEVELS,
    MAX_AMOUNT,
    MAX_JOBS,
    MAX_POOLS,
    NO_LIMIT_S,
    NOBODY,
    Floats,
    Holdings,
    Ints,
    Nodes,
    QueueJobs,
    SchedulerQueue,
    nobody_is_limited,
)


def checked(queue: SchedulerQueue) -> SchedulerQueue:
    """Return the queue with unknown limits made NO_LIMIT_S. Raises UsageError for what no cluster can have."""
    machine = checked_nodes(queue.machine)
    if queue.depth < 1:
        raise UsageError(f"depth {queue.depth}: needs at least 1")
    queue = queue._replace(machine=machine, limits=queue.limits or nobody_is_limited())
    running = checked_jobs(queue.running, queue, "running")
    waiting = checked_jobs(queue.waiting, queue, "waiting")
    queue = queue._replace(running=running, waiting=waiting)
    return queue._replace(holdings=checked_holdings(queue) if queue.holdings else spread_holdings(queue))


def checked_nodes(machine: Nodes) -> Nodes:
    """Return the nodes as compiled code takes them. Raises UsageError."""
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
    """Return jobs with every limit known and run times that rise up to it. Raises UsageError, naming the first."""
    n, width = len(jobs.limit_s), queue.machine.capacity.shape[1]
    limits = queue.limits or nobody_is_limited()
    if n > MAX_JOBS:
        raise UsageError(f"{n} {what} jobs: more than {MAX_JOBS}")
    expected = [(n, width), (n,), (n,), (n, len(LEVELS)), (n,), (n,), (n,), (n, len(NOBODY))]
    if [column.shape for column in jobs[:-1]] != expected or jobs.tres.shape != (n, limits.table.qos_tres.shape[2]):
        raise UsageError(f"{what} jobs: columns of different lengths {[column.shape for column in jobs]}")
    pools = int(queue.machine.pool.max()) + 1
    wrong = {
        "asks for a negative amount": (jobs.asks < 0).any(axis=1),
        "asks for an amount that no machine has": (jobs.asks > MAX_AMOUNT).any(axis=1),
        "names a pool that is not there": (jobs.pools < 0) | (jobs.pools >= 1 << pools),
        "asks for no node": jobs.nodes < 1,
        "has a run time that is no number": ~np.isfinite(jobs.run_s).all(axis=1),
        "has a negative time": (jobs.since_s < 0) | (jobs.run_s < 0).any(axis=1),
        "has an owner who is not there": ~_owners_known(jobs.owner, queue),
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
    """Return what running jobs hold, of which each names a job and a node. Raises UsageError."""
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
    """Return what running jobs hold of the first nodes of their pools. Raises UsageError for one of several pools."""
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
    """Return a column as compiled code takes it: another width or order would be compiled anew, for seconds."""
    return np.ascontiguousarray(column, dtype=np.int64)
