"""Running jobs in order of the ends that are believed of them: two arrays, sorted, for compiled loops.

`times[first:last]` are the instants and `jobs[first:last]` the jobs; equal times lie by job. The bounds are kept by
whoever holds the arrays. An array has twice the room of the jobs that can run at once, so that it is seldom moved.
"""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.compiled import compiled

Ints = NDArray[np.int64]


@compiled
def place_of(times: Ints, jobs: Ints, first: int, last: int, time: int, job: int) -> int:
    """Return the first place that does not come before (time, job)."""
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
