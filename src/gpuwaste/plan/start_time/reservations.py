"""Nodes held by jobs and kept for others: holdings, the reservation of a blocked job, Slurm's reservations (compiled).

The reservation is for the first job of a pool that finds no room: which nodes, and from which time on. The pool's
running jobs are assumed to end at their limits, in this order, until enough nodes have room. Slurm's own reservations
close pools to jobs for a time. Rows of holdings are reused.
"""

from typing import Final, NamedTuple

import numpy as np

from gpuwaste.plan.start_time.node_room import RESERVED, STAMP, Room, change, enough, log_end
from gpuwaste.plan.start_time.scheduler_queue import Ints
from gpuwaste.sim.compiled import compiled, in_place

NEVER: Final = 1 << 60
CLOSED_POOLS: Final = 0
CLOSED_FROM: Final = 1
CLOSED_UNTIL: Final = 2
CLOSED_NUMBER: Final = 3
# Columns of `held`: what one job holds on one node; the amounts follow.
NODE: Final = 0
NEXT: Final = 1
AMOUNTS: Final = 2


@in_place
def open_from(closed: Ints, pool: int, reservation: int, time: int, limit: int) -> int:
    """Return the first instant from `time` on at which a job of that limit may start in a pool, NEVER for none.

    A job that requests a reservation has to start and to end within it, and other reservations keep it out.
    """
    for own in range(len(closed)):
        if reservation >= 0 and closed[own, CLOSED_NUMBER] == reservation:
            time = max(time, closed[own, CLOSED_FROM])
    moved = True
    while moved:
        moved = False
        for k in range(len(closed)):
            shut = (
                (closed[k, CLOSED_POOLS] >> pool) & 1
                and time < closed[k, CLOSED_UNTIL]
                and time + limit > closed[k, CLOSED_FROM]
            )
            if (
                shut
                and closed[k, CLOSED_FROM] < closed[k, CLOSED_UNTIL]
                and (reservation < 0 or closed[k, CLOSED_NUMBER] != reservation)
            ):
                time, moved = closed[k, CLOSED_UNTIL], True
    for own in range(len(closed)):
        if reservation >= 0 and closed[own, CLOSED_NUMBER] == reservation and time + limit > closed[own, CLOSED_UNTIL]:
            return NEVER
    return int(time)


class Believed(NamedTuple):
    """Running jobs: `active` in the order of their believed ends `times`, their first holding, their pools as bits."""

    times: Ints
    active: Ints
    holding: Ints
    pools: Ints


@in_place
def reserve(  # noqa: C901 compiled: nodes that have room, then those that will have it
    room: Room,
    held: Ints,
    ends: Believed,
    bounds: tuple[int, int],
    pool: int,
    asks: Ints,
    nodes: int,
    chosen: Ints,
) -> tuple[int, int]:
    """Fill `chosen` with the nodes that will have room first: those that have it now, then in the order of ends.

    Returns the time in seconds at which there are enough (-1 for now, NEVER for never), and the next job to end.
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
        while place >= 0:  # its other holdings
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
    """Reserve these nodes of a pool from `time` on; `bounds` are the jobs whose ends reserve() has not checked."""
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
    """Remove all reservations."""
    for k in range(room.sizes[RESERVED]):
        room.shadow[room.reserved[k]] = -1
    room.sizes[RESERVED] = 0


@in_place
def _begin(room: Room, node: int) -> None:
    """Set `extra` of a node to what is free now, once for each reservation."""
    if room.stamp[node] != room.sizes[STAMP]:
        room.stamp[node] = room.sizes[STAMP]
        for r in range(room.free.shape[1]):
            room.extra[node, r] = room.free[node, r]


@in_place
def _give(room: Room, held: Ints, place: int, node: int) -> None:
    for r in range(room.free.shape[1]):
        room.extra[node, r] += held[place, AMOUNTS + r]


@in_place
def release(room: Room, held: Ints, first: int, spare: int) -> int:
    """Release all that a job holds; return the first spare row of `held`."""
    place = first
    while place >= 0:
        change(room, held[place, NODE], held[place, AMOUNTS:], 1)
        log_end(room, held[place, NODE])
        after = held[place, NEXT]
        held[place, NEXT] = spare
        spare, place = place, after
    return spare


@compiled
def with_spare(held: Ints, spare: int, rows: int) -> tuple[Ints, int]:
    """Return `held` with at least `rows` spare rows, and the first of them."""
    place, count = spare, 0
    while place >= 0 and count < rows:
        place, count = held[place, NEXT], count + 1
    if count == rows:
        return held, spare
    size = len(held)
    larger = np.empty((2 * size + rows, held.shape[1]), np.int64)
    larger[:size] = held
    for k in range(size, len(larger)):
        larger[k, NEXT] = spare
        spare = k
    return larger, spare


@in_place
def occupy(room: Room, held: Ints, spare: int, asks: Ints, nodes: Ints, count: int, end: int) -> tuple[int, int]:
    """Let a job hold nodes; return its first holding and the first spare row."""
    first = -1
    for k in range(count):
        node, place = nodes[k], spare
        spare = held[place, NEXT]
        held[place, NODE], held[place, NEXT] = node, first
        first = place
        for r in range(len(asks)):
            held[place, AMOUNTS + r] = asks[r]
        change(room, node, asks, -1)
        if 0 <= room.shadow[node] < end:
            for r in range(len(asks)):
                room.extra[node, r] -= asks[r]
    return first, spare
