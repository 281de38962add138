"""A queue played forward once: jobs in the order of priority, EASY backfill with one reservation in each pool.

The first job that finds no room reserves one of its pools: that in which enough running jobs are believed to have ended
first. A later job starts in a pool if it fits now, and the pool is not reserved, or it ends by the reservation's start,
or it fits what the reservation leaves free (Lifka, 1995; with one pool and one resource this is sim's EASY). Without
backfill a reserved pool is closed to all behind. No job is submitted later.

Requests that are only asked about come behind all others: they change nothing for anybody, so many are tried at once.
"""

from typing import NamedTuple

import numpy as np

from gpuwaste.plan.when.queue import Ints, Pools
from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.ends import pop, push
from gpuwaste.sim.running import insert, remove


class Held(NamedTuple):
    """r running jobs: amounts [r, R], pool [r] by number, seconds until the end [r], and what is believed of it [r]."""

    asks: Ints
    pool: Ints
    rest: Ints
    believed: Ints


class Asked(NamedTuple):
    """n jobs that wait: amounts [n, R], pools [n] as bits, limit and run [n], seconds until they may start [n].

    `kind` [n] is the same number, from 0, for jobs of equal amounts, pools and limit.
    """

    asks: Ints
    pools: Ints
    limit: Ints
    run: Ints
    begin: Ints
    kind: Ints


class Rules(NamedTuple):
    """How the scheduler passes: jobs looked at, whether it backfills, the waiting job to stop at (-1: none)."""

    depth: int
    backfills: bool
    watched: int


@compiled
def open_from(closed: Ints, pool: int, time: int, limit: int) -> int:
    """Return the first instant from `time` at which a job of that limit may start in a pool."""
    if closed[pool, 0] < closed[pool, 1] and time < closed[pool, 1] and time + limit > closed[pool, 0]:
        return int(closed[pool, 1])
    return time


@compiled
def fits(asks: Ints, job: int, free: Ints, pool: int) -> bool:
    """Return whether each amount that a job asks for is free in a pool."""
    for r in range(asks.shape[1]):  # noqa: SIM110 compiled: a generator is no loop there
        if asks[job, r] > free[pool, r]:
            return False
    return True


@compiled
def pool_now(
    asks: Ints, job: int, pools: int, limit: int, now: int, free: Ints, closed: Ints, shadow: Ints, extra: Ints
) -> int:
    """Return the first pool in which a job may start now, -1 for none."""
    p = 0
    while pools:
        unharmed = shadow[p] < 0 or now + limit <= shadow[p] or fits(asks, job, extra, p)
        if pools & 1 and unharmed and fits(asks, job, free, p) and open_from(closed, p, now, limit) == now:
            return p
        pools >>= 1
        p += 1
    return -1


@compiled
def reserve(
    asks: Ints,
    job: int,
    pools: int,
    limit: int,
    now: int,
    free: Ints,
    machine: Pools,
    shadow: Ints,
    extra: Ints,
    times: Ints,
    active: Ints,
    first: int,
    last: int,
    pool_of: Ints,
) -> int:
    """Reserve for a job that finds no room, in whichever of these pools it is believed to start first.

    Returns that pool, of which `shadow` and `extra` are set, or -1. `active[first:last]` are the running jobs, by the
    ends `times` that are believed of them.
    """
    best, best_time = -1, 0
    for p in range(len(free)):
        if not (pools >> p) & 1 or not fits(asks, job, machine.capacity, p):
            continue
        time, k = now, first
        extra[p] = free[p]
        while not fits(asks, job, extra, p) and k < last:
            time = times[k]
            k = give(asks, active, k, pool_of, extra, p)
        time = open_from(machine.closed, p, time, limit)
        while k < last and times[k] <= time:
            k = give(asks, active, k, pool_of, extra, p)
        if best < 0 or time < best_time:
            best, best_time = p, time
    if best >= 0:
        shadow[best] = best_time
        extra[best] -= asks[job]
    return best


@compiled
def give(asks: Ints, active: Ints, k: int, pool_of: Ints, extra: Ints, pool: int) -> int:
    """Add what the k-th running job holds to what will be free in a pool, if it runs there; returns the next k."""
    job = active[k]
    if pool_of[job] == pool:
        for r in range(asks.shape[1]):
            extra[pool, r] += asks[job, r]
    return k + 1


@compiled
def played(  # noqa: C901, PLR0912, PLR0915 one compiled loop, as in sim
    machine: Pools, held: Held, waiting: Asked, asked: Asked, rules: Rules
) -> tuple[Ints, Ints]:
    """Return the starts, in seconds from now, of those that wait [n] and of those asked about [c]; -1: never.

    It ends once every request that is asked about has started, or job `watched` has: later starts are -1 too.
    """
    n, r, c = len(waiting.limit), len(held.rest), len(asked.limit)
    start, when = np.full(n, -1, np.int64), np.full(c, -1, np.int64)
    asks, pool_of = np.concatenate((waiting.asks, held.asks)), np.concatenate((np.full(n, -1, np.int64), held.pool))
    believed = np.concatenate((np.zeros(n, np.int64), held.believed))
    pools, limit, run, begin = waiting.pools, waiting.limit, waiting.run, waiting.begin
    free, closed = machine.capacity.copy(), machine.closed
    end_times, end_jobs, running = np.empty(n + r, np.int64), np.empty(n + r, np.int64), 0
    times, active, first, last = np.empty(2 * (n + r) + 1, np.int64), np.empty(2 * (n + r) + 1, np.int64), 0, 0
    for i in range(r):
        free[held.pool[i]] -= held.asks[i]
        running = push(end_times, end_jobs, running, held.rest[i], n + i)
    for i in np.argsort(held.believed):
        first, last = insert(times, active, first, last, held.believed[i], n + i)
    begins = np.sort(np.concatenate((begin, asked.begin, closed[:, 1])))
    following = np.arange(1, n + 2)  # the queue as a list: following[n] is its first job, n its end
    following[n] = 0
    shadow, extra = np.empty(len(free), np.int64), free.copy()
    # A pass only takes room away: where one job found none, the next of its kind finds none.
    kind, failed, turn, waits = waiting.kind, np.full(n, -1, np.int64), 0, n
    of_kind, kinds, last_begin = np.zeros(n, np.int64), 0, 0
    for i in range(n):
        kinds += of_kind[kind[i]] == 0
        of_kind[kind[i]] += 1
        last_begin = max(last_begin, begin[i])
    now, left, begun = 0, c, 0
    while True:
        while running > 0 and end_times[0] <= now:
            job = end_jobs[0]
            running = pop(end_times, end_jobs, running)
            first, last = remove(times, active, first, last, believed[job], job)
            free[pool_of[job]] += asks[job]
        shadow[:] = -1
        turn += 1
        without_room = 0  # kinds
        before, job, looked, usable = n, following[n], 0, (1 << len(free)) - 1
        unreserved = usable
        while job < n and looked < rules.depth:
            if without_room == kinds and waits >= rules.depth and now >= last_begin:
                looked = rules.depth  # as many more would find no room
                break
            after = following[job]
            if begin[job] > now:
                before, job = job, after
                continue
            p = -1
            if pools[job] & usable:
                if failed[kind[job]] != turn:
                    p = pool_now(asks, job, pools[job] & usable, limit[job], now, free, closed, shadow, extra)
                    if p < 0:
                        failed[kind[job]] = turn
                        without_room += 1
                if p < 0 and pools[job] & unreserved:
                    found = reserve(
                        asks,
                        job,
                        pools[job] & unreserved,
                        limit[job],
                        now,
                        free,
                        machine,
                        shadow,
                        extra,
                        times,
                        active,
                        first,
                        last,
                        pool_of,
                    )
                    if found >= 0:
                        unreserved &= ~(1 << found)
                        if not rules.backfills:
                            usable &= ~(1 << found)
            if p < 0:
                before, job, looked = job, after, looked + 1
                continue
            waits -= 1
            of_kind[kind[job]] -= 1
            kinds -= of_kind[kind[job]] == 0
            start[job], pool_of[job], believed[job] = now, p, now + limit[job]
            free[p] -= asks[job]
            if shadow[p] >= 0 and believed[job] > shadow[p]:
                extra[p] -= asks[job]
            running = push(end_times, end_jobs, running, now + run[job], job)
            first, last = insert(times, active, first, last, believed[job], job)
            following[before], job = after, after
        if job == n and looked < rules.depth:
            for k in range(c):
                if when[k] >= 0 or asked.begin[k] > now:
                    continue
                may = asked.pools[k] & usable
                if pool_now(asked.asks, k, may, asked.limit[k], now, free, closed, shadow, extra) >= 0:
                    when[k] = now
                    left -= 1
        if (c > 0 and left == 0) or (rules.watched >= 0 and start[rules.watched] >= 0):
            break
        while begun < len(begins) and begins[begun] <= now:
            begun += 1
        if running > 0 and (begun == len(begins) or end_times[0] <= begins[begun]):
            now = end_times[0]
        elif begun < len(begins):
            now = begins[begun]
        else:
            break
    return start, when
