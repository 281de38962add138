"""The free processors of the future as steps, for compiled loops: what conservative backfill plans in.

`times[first:last]` are instants and `free[k]` the processors that are free from times[k] until times[k + 1], after the
last one for ever. The bounds are kept by whoever holds the arrays.
"""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.compiled import compiled

Ints = NDArray[np.int64]


@compiled
def cut(times: Ints, free: Ints, first: int, last: int, time: int) -> tuple[int, int, int]:
    """Make a step begin at an instant, not before the first; returns its place and the new bounds."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if times[middle] <= time:
            low = middle + 1
        else:
            high = middle
    place = low - 1
    if times[place] == time:
        return place, first, last
    if last == len(times):
        for k in range(first, last):
            times[k - first], free[k - first] = times[k], free[k]
        place, last, first = place - first, last - first, 0
    for k in range(last, place + 1, -1):
        times[k], free[k] = times[k - 1], free[k - 1]
    times[place + 1], free[place + 1] = time, free[place]
    return place + 1, first, last + 1


@compiled
def take(times: Ints, free: Ints, first: int, last: int, begin: int, end: int, procs: int) -> tuple[int, int]:
    """Take processors from begin until end (give them back where `procs` is negative); returns the new bounds."""
    place, first, last = cut(times, free, first, last, begin)
    before = first
    stop, first, last = cut(times, free, first, last, end)
    place += first - before
    for k in range(place, stop):
        free[k] -= procs
    for k in (stop, place):
        if k > first and free[k] == free[k - 1]:
            for m in range(k, last - 1):
                times[m], free[m] = times[m + 1], free[m + 1]
            last -= 1
    return first, last


@compiled
def earliest(times: Ints, free: Ints, first: int, last: int, span: int, procs: int, own: int) -> int:
    """Return the earliest start from times[first] at which `procs` are free for `span` seconds.

    `own` is the start of a reservation that the job holds already, whose processors count as free to it: nothing later
    than it is returned. -1: it holds none.
    """
    begin: int = times[first]
    until = own + span
    for k in range(first, last):
        have = free[k]
        if own >= 0:
            if begin >= own:
                return own
            if own <= times[k] < until:
                have += procs
        if have < procs:
            begin = times[k + 1]
        elif k + 1 == last or times[k + 1] - begin >= span:
            return begin
    return begin
