"""The reservation of the first job of a pool that finds no room: which nodes, and from when on (compiled).

The pool's running jobs are taken to end when their limits say, in this order, until enough nodes have room.
"""

from typing import Final, NamedTuple

from gpuwaste.plan.start_time.closing import NEVER
from gpuwaste.plan.start_time.queue import Ints
from gpuwaste.plan.start_time.room import RESERVED, STAMP, Room, enough
from gpuwaste.sim.compiled import in_place

# Columns of `held`: what one job holds of one node; the amounts follow.
NODE: Final = 0
NEXT: Final = 1
AMOUNTS: Final = 2


class Believed(NamedTuple):
    """Running jobs: `active` in the order of their believed ends `times`, their first holding, their pools as bits."""

    times: Ints
    active: Ints
    holding: Ints
    pools: Ints


@in_place
def reserve(  # noqa: C901 compiled: nodes that have room, then those that get it
    room: Room,
    held: Ints,
    ends: Believed,
    bounds: tuple[int, int],
    pool: int,
    asks: Ints,
    nodes: int,
    chosen: Ints,
) -> tuple[int, int]:
    """Fill `chosen` with the nodes that will have room first: those that have it now, then as jobs end.

    Returns the seconds at which there are enough (-1 for now, NEVER for never), and the next job to end.
    `bounds` are the first and last place in `ends`.
    """
    k, last = bounds
    room.sizes[STAMP] += 1
    found = 0
    for level in range(min(asks[room.scarcest[pool]], room.levels[pool] - 1), room.levels[pool]):
        node = room.first[pool, level]
        while node >= 0 and found < nodes:
            if enough(room.free[node], asks):
                _begin(room, node)
                chosen[found] = node
                found += 1
            node = room.after[node]
    time = -1
    while found < nodes and k < last:
        time = ends.times[k]
        job = ends.active[k]
        k += 1
        if not (ends.pools[job] >> pool) & 1:
            continue
        place = ends.holding[job]
        while place >= 0 and found < nodes:
            node = held[place, NODE]
            if room.pool[node] == pool:
                _begin(room, node)
                before = enough(room.extra[node], asks)
                _give(room, held, place, node)
                if not before and enough(room.extra[node], asks):
                    chosen[found] = node
                    found += 1
            place = held[place, NEXT]
        if found < nodes:
            continue
        while place >= 0:  # what else it holds
            node = held[place, NODE]
            if room.pool[node] == pool:
                _begin(room, node)
                _give(room, held, place, node)
            place = held[place, NEXT]
    return (time, k) if found >= nodes else (NEVER, k)


@in_place
def set_shadow(
    room: Room,
    held: Ints,
    ends: Believed,
    bounds: tuple[int, int],
    pool: int,
    asks: Ints,
    chosen: tuple[Ints, int],
    time: int,
) -> None:
    """Keep these nodes of a pool from `time` on; `bounds` are the jobs whose ends reserve() has not looked at."""
    (nodes, count), (k, last) = chosen, bounds
    for c in range(count):
        room.shadow[nodes[c]] = time
        room.reserved[room.sizes[RESERVED]] = nodes[c]
        room.sizes[RESERVED] += 1
    while k < last and ends.times[k] <= time:
        place = ends.holding[ends.active[k]]
        while place >= 0:
            node = held[place, NODE]
            if room.pool[node] == pool and room.shadow[node] >= 0:
                _give(room, held, place, node)
            place = held[place, NEXT]
        k += 1
    for c in range(count):
        for r in range(len(asks)):
            room.extra[nodes[c], r] -= asks[r]


@in_place
def clear_shadows(room: Room) -> None:
    """Forget all reservations."""
    for k in range(room.sizes[RESERVED]):
        room.shadow[room.reserved[k]] = -1
    room.sizes[RESERVED] = 0


@in_place
def _begin(room: Room, node: int) -> None:
    """Let `extra` of a node begin with what is free now, once for each reservation."""
    if room.stamp[node] != room.sizes[STAMP]:
        room.stamp[node] = room.sizes[STAMP]
        for r in range(room.free.shape[1]):
            room.extra[node, r] = room.free[node, r]


@in_place
def _give(room: Room, held: Ints, place: int, node: int) -> None:
    for r in range(room.free.shape[1]):
        room.extra[node, r] += held[place, AMOUNTS + r]
