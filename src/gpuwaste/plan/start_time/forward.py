"""One forward simulation of a queue: jobs by priority, EASY backfill with one reservation in each pool.

A job starts if enough nodes of one of its pools have room, and no limit holds it back (held_back.py). The first job
that finds no room reserves nodes of one of its pools: that in which enough running jobs are believed to have ended
first. A later job starts on a node that is not reserved, or if it ends by the reservation's start, or fits what the
reservation leaves free there (Lifka, 1995; with one node and one resource this is sim's EASY). Without backfill a
reserved pool is closed to all later jobs. No job is submitted later.

Queried requests are behind all others and do not affect any other job, so many are tried at once.
"""

from typing import NamedTuple

import numpy as np

from gpuwaste.plan.start_time import held_back as back
from gpuwaste.plan.start_time.held_back import HeldBack
from gpuwaste.plan.start_time.node_room import FITS, FULL, LOGGED, Room, choose, new_room, still_full
from gpuwaste.plan.start_time.reservations import (
    AMOUNTS,
    NEVER,
    NEXT,
    Believed,
    clear_shadows,
    occupy,
    open_from,
    release,
    reserve,
    set_shadow,
    with_spare,
)
from gpuwaste.plan.start_time.scheduler_queue import Floats, Ints, Nodes
from gpuwaste.sim.compiled import compiled, in_place
from gpuwaste.sim.ends import insert, pop, push, remove


class ProbeJobs(NamedTuple):
    """n waiting jobs: amounts [n, R] on each of `nodes` [n], pools as bits, limit and run, seconds to `begin` [n].

    `shape` [n] is the same number, from 0, for jobs of equal amounts, nodes, pools and reservation, `kind` for those of
    equal limit too, `alike` for those that count equally for the same QOS.
    """

    asks: Ints
    nodes: Ints
    pools: Ints
    limit: Ints
    run: Ints
    begin: Ints
    reservation: Ints
    owner: Ints
    tres: Floats
    shape: Ints
    kind: Ints
    alike: Ints


class Ran(NamedTuple):
    """r running jobs: seconds until the end [r], the scheduler's belief of that, owners [r, 5], TRES [r, T].

    `first` [r + 1] are the bounds of each job's holdings: `node` and `amounts` [h, R].
    """

    rest: Ints
    believed: Ints
    owner: Ints
    tres: Floats
    first: Ints
    node: Ints
    amounts: Ints


class BackfillRules(NamedTuple):
    """Rules of a scheduler's pass: jobs checked, whether it backfills, the waiting job to stop at (-1: none)."""

    depth: int
    backfills: bool
    watched: int


@in_place
def pool_now(
    room: Room,
    jobs: ProbeJobs,
    job: int,
    pools: int,
    now: int,
    closed: Ints,
    full_at: Ints,
    chosen: Ints,
) -> int:
    """Return the first of these pools in which a job may start now, on the nodes `chosen`; -1 for none."""
    asks, limit, shape = jobs.asks[job], jobs.limit[job], jobs.shape[job]
    if still_full(room, full_at, shape, asks, jobs.pools[job]):
        return -1
    full, p = pools == jobs.pools[job], 0
    while pools >> p:
        if (pools >> p) & 1:
            if open_from(closed, p, jobs.reservation[job], now, limit) == now:
                found = choose(room, p, asks, jobs.nodes[job], now + limit, chosen)
                if found == FITS:
                    return p
                full = full and found == FULL
            else:
                full = False
        p += 1
    if full:
        full_at[shape] = room.sizes[LOGGED]
    return -1


@in_place
def keep_for(
    room: Room,
    held: Ints,
    ends: Believed,
    bounds: tuple[int, int],
    jobs: ProbeJobs,
    job: int,
    pools: int,
    now: int,
    closed: Ints,
    chosen: Ints,
    best_nodes: Ints,
) -> int:
    """Reserve nodes for a job that finds no room, in the one of these pools where it is believed to start first.

    Returns that pool, -1 for none.
    """
    best, best_time, seen, p = -1, NEVER, 0, 0
    while pools >> p:
        if (pools >> p) & 1:
            time, looked = reserve(room, held, ends, bounds, p, jobs.asks[job], jobs.nodes[job], chosen)
            if time < NEVER:
                time = open_from(closed, p, jobs.reservation[job], max(time, now), jobs.limit[job])
            if time < best_time:
                best, best_time, seen = p, time, looked
                for k in range(jobs.nodes[job]):
                    best_nodes[k] = chosen[k]
        p += 1
    if best >= 0:
        set_shadow(room, held, ends, (seen, bounds[1]), best, jobs.asks[job], (best_nodes, jobs.nodes[job]), best_time)
    return best


@compiled
def played(  # noqa: C901, PLR0912, PLR0915 one compiled loop, as in sim
    machine: Nodes, ran: Ran, jobs: ProbeJobs, asked: ProbeJobs, held_back: HeldBack, rules: BackfillRules
) -> tuple[Ints, Ints]:
    """Return the starts, in seconds from now, of waiting jobs [n] and of queried requests [c]; -1: never.

    It ends once every queried request, or job `watched`, has started: later starts are -1 too.
    """
    n, r, c, m = len(jobs.limit), len(ran.rest), len(asked.limit), len(machine.pool)
    start, when = np.full(n, -1, np.int64), np.full(c, -1, np.int64)
    room, closed = new_room(machine.capacity, machine.pool), machine.closed
    chosen, best_nodes = np.empty(m, np.int64), np.empty(m, np.int64)
    everywhere = (1 << (machine.pool.max() + 1)) - 1
    limited, awake, sizes, starts_of = len(held_back.first) > 0, held_back.woken, held_back.sizes, held_back.begun
    user_of, pools_of, begin, kind_of = jobs.owner[:, back.USER].copy(), jobs.pools, jobs.begin, jobs.kind
    held, spare = np.empty((0, AMOUNTS + machine.capacity.shape[1]), np.int64), -1
    held, spare = with_spare(held, spare, len(ran.node) + 64)
    end_times, end_jobs, running = np.empty(n + r, np.int64), np.empty(n + r, np.int64), 0
    ends = Believed(
        np.empty(2 * (n + r) + 1, np.int64),
        np.empty(2 * (n + r) + 1, np.int64),
        np.full(n + r, -1, np.int64),
        np.zeros(n + r, np.int64),
    )
    believed = np.empty(n + r, np.int64)
    first = last = 0
    for i in range(r):
        believed[n + i] = ran.believed[i]
        for k in range(ran.first[i], ran.first[i + 1]):
            chosen[0] = ran.node[k]
            single, spare = occupy(room, held, spare, ran.amounts[k], chosen, 1, 0)
            held[single, NEXT] = ends.holding[n + i]
            ends.holding[n + i] = single
            ends.pools[n + i] |= 1 << machine.pool[ran.node[k]]
        running = push(end_times, end_jobs, running, ran.rest[i], n + i)
    for i in np.argsort(ran.believed):
        first, last = insert(ends.times, ends.active, first, last, believed[n + i], n + i)
    begins = np.sort(np.concatenate((jobs.begin, asked.begin, closed[:, 1], closed[:, 2])))
    following = np.arange(1, n + 2)  # the queue as a list: following[n] is its first job, n its end
    following[n] = 0
    failed, turn, listed = np.full(n, -1, np.int64), np.int64(0), n
    full_at, asked_full_at = np.full(n, -1, np.int64), np.full(c, -1, np.int64)
    looked_at = np.full(n, -1, np.int64)  # how many jobs of the user had begun
    of_kind, kinds, last_begin = np.zeros(n, np.int64), 0, 0
    for i in range(n):
        kinds += of_kind[kind_of[i]] == 0
        of_kind[kind_of[i]] += 1
        last_begin = max(last_begin, jobs.begin[i])
    now, left, begun = 0, c, 0
    while True:
        while running > 0 and end_times[0] <= now:
            job = end_jobs[0]
            running = pop(end_times, end_jobs, running)
            first, last = remove(ends.times, ends.active, first, last, believed[job], job)
            spare = release(room, held, ends.holding[job], spare)
            if limited:
                owner = jobs.owner[job] if job < n else ran.owner[job - n]
                tres = jobs.tres[job] if job < n else ran.tres[job - n]
                back.count_one(held_back.table, held_back.use, held_back.ran, owner, tres, -1)
                back.wake_for(held_back, owner)
        clear_shadows(room)
        turn += 1
        without_room = 0  # kinds
        before, looked, usable, unreserved, all_seen = n, 0, everywhere, everywhere, False
        while looked < rules.depth:
            job = following[before]
            if without_room == kinds and now >= last_begin and (unreserved == 0 or sizes[back.WOKEN] == 0):
                if sizes[back.WOKEN] == 0 and listed >= rules.depth:
                    break  # at least `depth` more would find no room
                if unreserved == 0:
                    job = n  # nor would any of the queue: only woken jobs are left
            woken = sizes[back.WOKEN] > 0 and awake[sizes[back.WOKEN] - 1, 0] < job
            if woken:
                job = awake[sizes[back.WOKEN] - 1, 0]
            if job == n:
                all_seen = following[before] == n or listed < rules.depth
                break
            if begin[job] > now:
                before = job
                continue
            kind, mine, p, holder, place, into = kind_of[job], pools_of[job], -1, -1, -1, -1
            if woken:
                place = back.take_woken(held_back)
            if mine & usable and failed[kind] != turn:
                p = pool_now(room, jobs, job, mine & usable, now, closed, full_at, chosen)
                if p < 0:
                    failed[kind] = turn
                    without_room += of_kind[kind] > 0
            if limited and (woken or p >= 0 or mine & unreserved or looked_at[job] != starts_of[user_of[job]]):
                looked_at[job] = starts_of[user_of[job]]
                holder = back.holder_of(held_back, jobs.owner[job], jobs.tres[job])
            if not woken and (p >= 0 or holder >= 0):
                following[before] = following[job]
                listed -= 1
                of_kind[kind] -= 1
                kinds -= of_kind[kind] == 0
                without_room -= of_kind[kind] == 0 and failed[kind] == turn
            if holder >= 0:
                into = back.hold(held_back, job, jobs.alike[job], holder)
            elif p >= 0:
                start[job], believed[job] = now, now + jobs.limit[job]
                held, spare = with_spare(held, spare, jobs.nodes[job])
                ends.pools[job] = 1 << p
                ends.holding[job], spare = occupy(
                    room, held, spare, jobs.asks[job], chosen, jobs.nodes[job], believed[job]
                )
                running = push(end_times, end_jobs, running, now + jobs.run[job], job)
                first, last = insert(ends.times, ends.active, first, last, believed[job], job)
                if limited:
                    back.count_one(held_back.table, held_back.use, held_back.ran, jobs.owner[job], jobs.tres[job], 1)
                    starts_of[user_of[job]] += 1
            else:
                if woken:
                    while following[before] < job:
                        before = following[before]
                    following[job], following[before] = following[before], job
                    listed += 1
                    kinds += of_kind[kind] == 0
                    without_room += of_kind[kind] == 0 and failed[kind] == turn
                    of_kind[kind] += 1
                before, looked = job, looked + 1
                if mine & unreserved:
                    found = keep_for(
                        room, held, ends, (first, last), jobs, job, mine & unreserved, now, closed, chosen, best_nodes
                    )
                    if found >= 0:
                        unreserved &= ~(1 << found)
                        if not rules.backfills:
                            usable &= ~(1 << found)
            if place >= 0 and into != place:
                back.wake(held_back, place)
        if all_seen:
            for k in range(c):
                if when[k] >= 0 or asked.begin[k] > now:
                    continue
                may = asked.pools[k] & usable
                if may and pool_now(room, asked, k, may, now, closed, asked_full_at, chosen) >= 0:
                    if limited and back.holder_of(held_back, asked.owner[k], asked.tres[k]) >= 0:
                        continue
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
