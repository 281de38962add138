"""Conservative backfill, the variant that compresses: every job is promised a start as it is submitted.

A job takes the earliest gap that delays nobody's promise. Whenever jobs have ended, each waiting job, in the order of
submission, may move its own promise to an earlier gap, never to a later one (Mualem and Feitelson, 2001). A job that
outlasts its believed walltime is believed to run until its limit; the promises that this breaks are made again, in the
order of submission.
"""

from typing import Final

import numpy as np

from gpuwaste.sim.believed_times import believed_of, ended, no_runs
from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.ends import earliest, pop, push, take
from gpuwaste.sim.trace import Ints, Planned

TITLE: Final = "conservative backfill: every job holds a reservation, which moves to earlier gaps (compress)"


@compiled
def starts(jobs: Planned, total: int) -> Ints:  # noqa: C901, PLR0912, PLR0915 one compiled loop, as easy.py
    """Return the start of each job; see schedulers."""
    submit, run, given, limit, procs, user = jobs
    n = len(submit)
    start, promised, expected = np.full(n, -1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    room = min(n, total)
    end_times, end_jobs, running = np.empty(room, np.int64), np.empty(room, np.int64), 0
    late_times, late_jobs, late = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), 0
    learns, runs, believed = len(user) > 0, no_runs(user), given.copy()
    outlasts = learns or np.any(given < run)
    queue, waiting = np.empty(n, np.int64), 0
    steps = 4 * (n + room) + 8  # a step begins or ends a reservation; twice that, so that they are seldom moved
    times, free, first, last = np.empty(steps, np.int64), np.empty(steps, np.int64), 0, 1
    times[0], free[0] = submit[0], total
    arrived, next_start, gaps = 0, -1, False
    while arrived < n or running > 0:
        now = end_times[0] if running > 0 else submit[arrived]
        if arrived < n and submit[arrived] < now:
            now = submit[arrived]
        if 0 <= next_start < now:
            now = next_start
        if late > 0 and late_times[0] < now:
            now = late_times[0]
        while first + 1 < last and times[first + 1] <= now:
            first += 1
        times[first] = now
        left = broken = False
        while running > 0 and end_times[0] == now:
            job = end_jobs[0]
            running = pop(end_times, end_jobs, running)
            left = True
            if learns:
                ended(runs, user[job], run[job])
            if expected[job] > now:
                first, last = take(times, free, first, last, now, expected[job], -procs[job])
                gaps = True
            expected[job] = -1
        while late > 0 and late_times[0] <= now:
            job, passed = late_jobs[0], late_times[0]
            late = pop(late_times, late_jobs, late)
            if expected[job] == passed:
                expected[job] = max(start[job] + limit[job], now + 1)
                first, last = take(times, free, first, last, now, expected[job], procs[job])
                late = push(late_times, late_jobs, late, expected[job], job)
                broken = True
        if broken:
            for k in range(waiting):
                job = queue[k]
                begin, end = max(promised[job], now), promised[job] + believed[job]
                first, last = take(times, free, first, last, begin, end, -procs[job])
            for k in range(waiting):
                job = queue[k]
                promised[job] = earliest(times, free, first, last, believed[job], procs[job], -1)
                end = promised[job] + believed[job]
                first, last = take(times, free, first, last, promised[job], end, procs[job])
        elif left and gaps:
            gaps = False
            for k in range(waiting):
                job = queue[k]
                better = earliest(times, free, first, last, believed[job], procs[job], promised[job])
                if better < promised[job]:
                    end = promised[job] + believed[job]
                    first, last = take(times, free, first, last, promised[job], end, -procs[job])
                    end = better + believed[job]
                    first, last = take(times, free, first, last, better, end, procs[job])
                    promised[job] = better
                    gaps = True
        while arrived < n and submit[arrived] == now:
            job = arrived
            if learns:
                believed[job] = believed_of(runs, user[job], limit[job])
            promised[job] = earliest(times, free, first, last, believed[job], procs[job], -1)
            first, last = take(times, free, first, last, promised[job], promised[job] + believed[job], procs[job])
            queue[waiting] = job
            waiting += 1
            arrived += 1
        kept, next_start = 0, -1
        for k in range(waiting):
            job = queue[k]
            if promised[job] > now:
                queue[kept] = job
                kept += 1
                if next_start < 0 or promised[job] < next_start:
                    next_start = promised[job]
                continue
            start[job], expected[job] = now, now + believed[job]
            running = push(end_times, end_jobs, running, now + run[job], job)
            if outlasts:
                late = push(late_times, late_jobs, late, expected[job], job)
        waiting = kept
    return start
