"""Queues for the tests of plan/when: rows as tuples (amounts, pools, limit, run), all in one resource unless said."""

from collections.abc import Sequence

import numpy as np

from gpuwaste.plan.start_time.scheduler_queue import LEVELS, QueuedRequest, SchedulerQueue, jobs_of, one_node_each


def exactly(asks: Sequence[int], limit: int, run: int, pools: int = 1, since: int = 0) -> QueuedRequest:
    """Return a job whose run time is known."""
    return QueuedRequest(asks, pools, limit, [run] * len(LEVELS), since)


def spread(asks: Sequence[int], limit: int, pools: int = 1, since: int = 0) -> QueuedRequest:
    """Return a job that runs anything up to its limit."""
    return QueuedRequest(asks, pools, limit, [level * limit for level in LEVELS], since)


def queue(
    capacity: Sequence[Sequence[int]],
    running: Sequence[QueuedRequest] = (),
    waiting: Sequence[QueuedRequest] = (),
    *,
    backfills: bool = True,
    depth: int = 500,
) -> SchedulerQueue:
    """Return a queue at instant 1,000,000."""
    machine = one_node_each(np.array(capacity, np.int64))
    width = len(capacity[0])
    return SchedulerQueue(1_000_000, machine, jobs_of(running, width), jobs_of(waiting, width), depth, backfills)
