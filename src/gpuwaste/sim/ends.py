"""What compiled loops keep of running jobs: their ends as a heap, their believed ends sorted, the free processors.

The heap of ends is `times[:size]` and `jobs[:size]`; the caller keeps the size. Equal times are popped by job.
Believed ends are sorted: `times[first:last]` are the instants and `jobs[first:last]` the jobs; equal times by job.
Such an array has twice the room of the jobs that can run at once, so that it is seldom moved. Free processors are
steps: `times[first:last]` are instants and `free[k]` the processors that are free from times[k] until times[k + 1],
after the last one for ever. The caller keeps the bounds of both.
"""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.compiled import compiled, in_place

Ints = NDArray[np.int64]


@in_place
def push(times: Ints, jobs: Ints, size: int, time: int, job: int) -> int:
    """Add an end; returns the new size."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if times[above] < time or (times[above] == time and jobs[above] < job):
            break
        times[place], jobs[place] = times[above], jobs[above]
        place = above
    times[place], jobs[place] = time, job
    return size + 1


@in_place
def pop(times: Ints, jobs: Ints, size: int) -> int:
    """Remove the first end, which the caller has read at place 0; returns the new size."""
    size -= 1
    time, job = times[size], jobs[size]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        right = below + 1
        if right < size and (
            times[right] < times[below] or (times[right] == times[below] and jobs[right] < jobs[below])
        ):
            below = right
        if time < times[below] or (time == times[below] and job < jobs[below]):
            break
        times[place], jobs[place] = times[below], jobs[below]
        place = below
    times[place], jobs[place] = time, job
    return size


@compiled
def place_of(times: Ints, jobs: Ints, first: int, last: int, time: int, job: int) -> int:
    """Return the first place that is not before (time, job)."""
    while first < last:
        middle = (first + last) // 2
        if times[middle] < time or (times[middle] == time and jobs[middle] < job):
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def insert(times: Ints, jobs: Ints, first: int, last: int, time: int, job: int) -> tuple[int, int]:
    """Add a job; returns the new bounds."""
    if last == len(times):
        for k in range(first, last):
            times[k - first], jobs[k - first] = times[k], jobs[k]
        first, last = 0, last - first
    place = place_of(times, jobs, first, last, time, job)
    for k in range(last, place, -1):
        times[k], jobs[k] = times[k - 1], jobs[k - 1]
    times[place], jobs[place] = time, job
    return first, last + 1


@compiled
def remove(times: Ints, jobs: Ints, first: int, last: int, time: int, job: int) -> tuple[int, int]:
    """Remove a job that is there, moving the shorter side; returns the new bounds."""
    place = place_of(times, jobs, first, last, time, job)
    if place - first < last - place:
        for k in range(place, first, -1):
            times[k], jobs[k] = times[k - 1], jobs[k - 1]
        return first + 1, last
    for k in range(place, last - 1):
        times[k], jobs[k] = times[k + 1], jobs[k + 1]
    return first, last - 1


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
