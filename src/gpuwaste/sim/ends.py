"""The ends of running jobs in order of time: a binary heap in two arrays, for compiled loops.

The heap is `times[:size]` and `jobs[:size]`; whoever holds it keeps the size. Equal times come out by job.
"""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.compiled import in_place

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
