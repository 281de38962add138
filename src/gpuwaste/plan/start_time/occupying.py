"""What jobs hold of nodes, as rows that are used again: compiled."""

import numpy as np

from gpuwaste.plan.start_time.queue import Ints
from gpuwaste.plan.start_time.reserving import AMOUNTS, NEXT, NODE
from gpuwaste.plan.start_time.room import Room, change, log_end
from gpuwaste.sim.compiled import compiled, in_place


@in_place
def release(room: Room, held: Ints, first: int, spare: int) -> int:
    """Give back all that a job holds; returns the first spare row of `held`."""
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
    """Return `held` with so many spare rows at least, and the first of them."""
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
    """Let a job hold nodes; returns its first holding and the first spare row."""
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
