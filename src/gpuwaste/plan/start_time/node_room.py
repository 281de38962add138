"""What is free on each node, and which nodes a job gets: compiled.

The nodes of a pool are in lists by the free amount of the pool's scarcest resource, GPUs where it has any. So a job is
tried on few nodes, first on those that it fills most: large nodes stay free.
"""

from typing import Final, NamedTuple

import numpy as np

from gpuwaste.plan.start_time.scheduler_queue import Ints
from gpuwaste.sim.compiled import compiled, in_place

HARMED: Final = 0  # there is room, but another job has reserved it
FITS: Final = 1
FULL: Final = -1
LOG: Final = 4096
_FEW: Final = 4  # nodes of a pool that one list serves
_LEVELS: Final = 64

# Places of `sizes`.
LOGGED: Final = 0
RESERVED: Final = 1
STAMP: Final = 2


class Room(NamedTuple):
    """m nodes in P pools: `free` [m, R], and the lists: `level` [m], `first` [P, levels], `after` and `before` [m].

    `scarcest` [P] is a resource, `levels` [P] the number of the pool's lists. `shadow` [m] is when a reserved node is
    expected to have room for the job that has reserved it, -1 for none, and `extra` [m, R] what that job leaves free.
    `log` has the nodes on which jobs have ended, in order; `sizes` counts them.
    """

    free: Ints
    pool: Ints
    scarcest: Ints
    levels: Ints
    level: Ints
    first: Ints
    after: Ints
    before: Ints
    shadow: Ints
    extra: Ints
    stamp: Ints
    reserved: Ints
    log: Ints
    sizes: Ints


@compiled
def new_room(capacity: Ints, pool: Ints) -> Room:
    """Return the room of empty nodes."""
    m, pools = len(pool), pool.max() + 1
    scarcest, levels, size = np.zeros(pools, np.int64), np.ones(pools, np.int64), np.zeros(pools, np.int64)
    largest = np.zeros((pools, capacity.shape[1]), np.int64)
    for node in range(m):
        size[pool[node]] += 1
        for r in range(capacity.shape[1]):
            largest[pool[node], r] = max(largest[pool[node], r], capacity[node, r])
    for p in range(pools):
        for r in range(capacity.shape[1]):
            if largest[p, r] > 0 and (largest[p, scarcest[p]] == 0 or largest[p, r] < largest[p, scarcest[p]]):
                scarcest[p] = r
        if size[p] > _FEW:
            levels[p] = min(largest[p, scarcest[p]], _LEVELS) + 1
    room = Room(
        capacity.copy(),
        pool,
        scarcest,
        levels,
        np.zeros(m, np.int64),
        np.full((pools, levels.max()), -1, np.int64),
        np.full(m, -1, np.int64),
        np.full(m, -1, np.int64),
        np.full(m, -1, np.int64),
        np.zeros(capacity.shape, np.int64),
        np.zeros(m, np.int64),
        np.empty(m, np.int64),
        np.empty(LOG, np.int64),
        np.zeros(3, np.int64),
    )
    for node in range(m - 1, -1, -1):
        link(room, node)
    return room


@in_place
def level_of(room: Room, node: int) -> int:
    """Return the list in which a node belongs."""
    p = room.pool[node]
    return int(min(max(room.free[node, room.scarcest[p]], 0), room.levels[p] - 1))


@in_place
def link(room: Room, node: int) -> None:
    """Put a node into its list."""
    p, level = room.pool[node], level_of(room, node)
    head = room.first[p, level]
    room.level[node], room.after[node], room.before[node] = level, head, -1
    if head >= 0:
        room.before[head] = node
    room.first[p, level] = node


@in_place
def change(room: Room, node: int, amounts: Ints, sign: int) -> None:
    """Give amounts back to a node (1), or take them (-1)."""
    for r in range(len(amounts)):
        room.free[node, r] += sign * amounts[r]
    if level_of(room, node) == room.level[node]:
        return
    before, after = room.before[node], room.after[node]
    if before >= 0:
        room.after[before] = after
    else:
        room.first[room.pool[node], room.level[node]] = after
    if after >= 0:
        room.before[after] = before
    link(room, node)


@in_place
def enough(room: Ints, asks: Ints) -> bool:
    """Return whether there is room for each amount that a job requests."""
    for r in range(len(asks)):  # noqa: SIM110 compiled: a generator is no loop there
        if asks[r] > room[r]:
            return False
    return True


@in_place
def choose(room: Room, pool: int, asks: Ints, nodes: int, end: int, chosen: Ints) -> int:
    """Fill `chosen` with `nodes` nodes of a pool for a job that would end at `end`; return FITS, HARMED or FULL."""
    found = free = 0
    for level in range(min(asks[room.scarcest[pool]], room.levels[pool] - 1), room.levels[pool]):
        node = room.first[pool, level]
        while node >= 0:
            if enough(room.free[node], asks):
                free += 1
                if room.shadow[node] < 0 or end <= room.shadow[node] or enough(room.extra[node], asks):
                    chosen[found] = node
                    found += 1
                    if found == nodes:
                        return FITS
            node = room.after[node]
    return HARMED if free >= nodes else FULL


@in_place
def log_end(room: Room, node: int) -> None:
    """Log that a job has ended on a node."""
    room.log[room.sizes[LOGGED] % len(room.log)] = node
    room.sizes[LOGGED] += 1


@in_place
def still_full(room: Room, full_at: Ints, shape: int, asks: Ints, pools: int) -> bool:
    """Return whether jobs of a shape that had no room still have none: no job has ended where they fit.

    `full_at` [shapes] is the length of the log when there was no room, -1 where that is unknown.
    """
    logged, since = room.sizes[LOGGED], full_at[shape]
    if since < 0 or logged - since > len(room.log):
        return False
    for k in range(since, logged):
        node = room.log[k % len(room.log)]
        if (pools >> room.pool[node]) & 1 and enough(room.free[node], asks):
            return False
    full_at[shape] = logged
    return True


@compiled
def pools_with_enough(capacity: Ints, pool: Ints, asks: Ints, nodes: Ints, pools: Ints) -> Ints:
    """Return the pools, as bits [n], that have enough nodes for each job when they are empty."""
    found = np.zeros(len(nodes), np.int64)
    counts = np.empty(pool.max() + 1, np.int64)
    for job in range(len(nodes)):
        counts[:] = 0
        for node in range(len(pool)):
            if (pools[job] >> pool[node]) & 1 and enough(capacity[node], asks[job]):
                counts[pool[node]] += 1
        for p in range(len(counts)):
            if (pools[job] >> p) & 1 and counts[p] >= nodes[job]:
                found[job] |= 1 << p
    return found
