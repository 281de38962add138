"""Where a job starts now, and which nodes are kept for one that finds no room: compiled."""

from gpuwaste.plan.start_time.closing import NEVER, open_from
from gpuwaste.plan.start_time.columns import ProbeJobs
from gpuwaste.plan.start_time.queue import Ints
from gpuwaste.plan.start_time.reserving import Believed, reserve, set_shadow
from gpuwaste.plan.start_time.room import FITS, FULL, LOGGED, Room, choose, still_full
from gpuwaste.sim.compiled import in_place


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
    """Reserve nodes for a job that finds no room, in whichever of these pools it is believed to start first.

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
