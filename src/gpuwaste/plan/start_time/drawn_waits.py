"""Waits from a queue that is simulated forward many times, each time with newly drawn run times."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gpuwaste.plan.start_time.forward import BackfillRules, ProbeJobs, Ran, played
from gpuwaste.plan.start_time.held_back import USER, never_allowed, new_held_back, use_of
from gpuwaste.plan.start_time.node_room import pools_with_enough
from gpuwaste.plan.start_time.run_times import believed_rest, drawn, drawn_rest
from gpuwaste.plan.start_time.scheduler_queue import Ints, QueueJobs, QueueLimits, SchedulerQueue, nobody_is_limited
from gpuwaste.sim.assoc_limits import LimitUse, no_use


class _Prepared(NamedTuple):
    """What all draws share: waiting jobs without run times, running jobs without ends, and their usage."""

    waiting: ProbeJobs
    ran: Ran
    use: LimitUse
    tasks: Ints
    groups: int


def waits_of(queue: SchedulerQueue, asked: QueueJobs, places: Sequence[int | None], draws: int, seed: int) -> Ints:
    """Return the waits [draws, c] of requests, each behind the first `place` jobs of the queue; -1: it never starts.

    Each is simulated without the others. The queue has been `checked`. Requests behind all others are
    simulated together, since they do not affect each other.
    """
    rng = np.random.default_rng([seed, 0])
    rest, runs = drawn_rest(queue.running, rng, draws), drawn(queue.waiting, rng, draws)
    waits = np.full((draws, len(places)), -1, np.int64)
    n, limits = len(queue.waiting.limit_s), queue.limits or nobody_is_limited()
    users = _users(queue.running, queue.waiting, asked)
    behind = [k for k, place in enumerate(places) if place is None or place >= n]
    if behind:
        prepared = _prepared(queue, queue.waiting, limits, users)
        last = _columns(queue, _rows(asked, behind), limits, users)
        for draw in range(draws):
            waits[draw, behind] = _once(queue, prepared, limits, rest[draw], runs[draw], last, -1)[1]
    none = _columns(queue, _rows(asked, []), limits, users)
    for k, place in enumerate(places):
        if place is None or place >= n:
            continue
        at = max(place, 0)
        prepared = _prepared(queue, _joined(queue.waiting, asked, k, at), limits, users)
        for draw in range(draws):
            run = np.insert(runs[draw], at, 1)
            waits[draw, k] = _once(queue, prepared, limits, rest[draw], run, none, at)[0][at]
    return waits


def _once(
    queue: SchedulerQueue,
    prepared: _Prepared,
    limits: QueueLimits,
    rest: Ints,
    run: Ints,
    tried: ProbeJobs,
    watched: int,
) -> tuple[Ints, Ints]:
    held = new_held_back(
        limits.table,
        LimitUse(*(column.copy() for column in prepared.use)),
        limits.throttles,
        prepared.tasks.copy(),
        np.concatenate((prepared.waiting.owner, prepared.ran.owner, tried.owner)),
        prepared.groups,
    )
    rules = BackfillRules(queue.depth, queue.backfills, watched)
    ran, waiting = prepared.ran._replace(rest=rest), prepared.waiting._replace(run=run)
    return played(queue.machine, ran, waiting, tried, held, rules)


def _prepared(queue: SchedulerQueue, waiting: QueueJobs, limits: QueueLimits, users: int) -> _Prepared:
    running, held = queue.running, queue.holdings
    assert held is not None  # noqa: S101 set by checked()
    order = np.argsort(held.job, kind="stable")
    first = np.searchsorted(held.job[order], np.arange(len(running.limit_s) + 1)).astype(np.int64)
    believed = believed_rest(running)
    ran = Ran(believed, believed, running.owner, running.tres, first, held.node[order], held.amounts[order])
    use, tasks = use_of(limits, running.owner, running.tres, users)
    groups = len(np.unique(np.column_stack((waiting.owner, waiting.tres)), axis=0))
    return _Prepared(_columns(queue, waiting, limits, users), ran, use, tasks, groups)


def _columns(queue: SchedulerQueue, jobs: QueueJobs, limits: QueueLimits, users: int) -> ProbeJobs:
    """Return jobs without run times; jobs that can never start have no pools."""
    machine = queue.machine
    shape_rows = np.column_stack((jobs.asks, jobs.nodes, jobs.pools, jobs.reservation))
    shapes, shape = _numbers(shape_rows)
    able = np.zeros(len(shapes), np.int64)
    if len(shapes):
        asks, nodes, pools = np.ascontiguousarray(shapes[:, :-3]), shapes[:, -3].copy(), shapes[:, -2].copy()
        able = pools_with_enough(machine.capacity, machine.pool, asks, nodes, pools)
    empty = no_use(limits.table, users)
    never = never_allowed(limits.table, empty, jobs.owner, jobs.tres, jobs.limit_s)
    pools = np.where(never == 1, 0, able[shape])
    return ProbeJobs(
        asks=jobs.asks,
        nodes=jobs.nodes,
        pools=pools,
        limit=jobs.limit_s,
        run=jobs.limit_s,
        begin=jobs.since_s,
        reservation=jobs.reservation,
        owner=jobs.owner,
        tres=jobs.tres,
        shape=_numbers(np.column_stack((shape, pools)))[1],
        kind=_numbers(np.column_stack((shape, pools, jobs.limit_s)))[1],
        alike=_numbers(np.column_stack((jobs.owner[:, :2], jobs.tres)))[1],
    )


def _numbers(rows: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the distinct rows, and the number of each row [n] among them."""
    found, number = np.unique(rows, axis=0, return_inverse=True)
    return found, number.reshape(-1).astype(np.int64)


def _users(*jobs: QueueJobs) -> int:
    return 1 + max(int(each.owner[:, USER].max(initial=0)) for each in jobs)


def _rows(jobs: QueueJobs, rows: Sequence[int]) -> QueueJobs:
    at = np.array(rows, np.intp)
    return jobs.changed(lambda column: column[at])


def _joined(waiting: QueueJobs, asked: QueueJobs, k: int, at: int) -> QueueJobs:
    """Return the waiting jobs with request k inserted."""
    columns = zip(waiting, asked, strict=True)
    return QueueJobs(*(cast("Any", np.insert(column, at, own[k], axis=0)) for column, own in columns))
