"""EASY backfill: jobs start in the order of submission; the first that does not fit is promised its earliest start.

That job's shadow time is when enough running jobs are believed to have ended. A later job may start now if it fits and
either ends by the shadow time or needs no more than the processors that the first job leaves free then (Lifka, 1995;
Mualem and Feitelson, 2001). A job that outlasts its believed walltime is believed to run until its limit.
"""

from typing import Final

import numpy as np

from gpuwaste.sim.believed_times import believed_of, ended, no_runs
from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.ends import insert, pop, push, remove
from gpuwaste.sim.trace import Ints, Planned

TITLE: Final = "EASY backfill: one reservation, for the first job that does not fit"


@compiled
def starts(jobs: Planned, total: int) -> Ints:  # noqa: C901, PLR0912, PLR0915 one compiled loop: calls between compiled functions cannot return a state of twelve values cheaply
    """Return the start of each job; see schedulers."""
    submit, run, given, limit, procs, user = jobs
    n = len(submit)
    start = np.full(n, -1, dtype=np.int64)
    room = min(n, total)
    end_times, end_jobs, running = np.empty(room, np.int64), np.empty(room, np.int64), 0
    times, active, first, last = np.empty(2 * room + 1, np.int64), np.empty(2 * room + 1, np.int64), 0, 0
    expected = np.empty(n, np.int64)
    queue, asks, takes = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    head = tail = 0
    free, shadow, extra, least = total, 0, 0, 0
    arrived = 0
    learns, runs = len(user) > 0, no_runs(user)
    while arrived < n or running > 0:
        now = end_times[0] if running > 0 else submit[arrived]
        if arrived < n and submit[arrived] < now:
            now = submit[arrived]
        if head < tail and times[first] < now:
            now = times[first]
        again = False
        while running > 0 and end_times[0] == now:
            job = end_jobs[0]
            running = pop(end_times, end_jobs, running)
            first, last = remove(times, active, first, last, expected[job], job)
            free += procs[job]
            again = True
            if learns:
                ended(runs, user[job], run[job])
        new = tail
        while arrived < n and submit[arrived] == now:
            queue[tail], asks[tail] = arrived, procs[arrived]
            takes[tail] = believed_of(runs, user[arrived], limit[arrived]) if learns else given[arrived]
            least = min(least, procs[arrived]) if tail > head else procs[arrived]
            tail += 1
            arrived += 1
        while head < tail and asks[head] <= free:
            job = queue[head]
            start[job], expected[job] = now, now + takes[head]
            free -= asks[head]
            running = push(end_times, end_jobs, running, now + run[job], job)
            first, last = insert(times, active, first, last, expected[job], job)
            head += 1
            again = True
        if head == tail:
            continue
        while times[first] <= now:
            job = active[first]
            first += 1
            expected[job] = max(start[job] + limit[job], now + 1)
            first, last = insert(times, active, first, last, expected[job], job)
            again = True
        # Without an end nothing that did not fit fits now, and the first job's promise holds: only new jobs are tried.
        if again or new <= head:
            new = head + 1
            shadow, extra = now, free
            place = first
            while extra < asks[head]:
                shadow = times[place]
                extra += procs[active[place]]
                place += 1
            while place < last and times[place] == shadow:
                extra += procs[active[place]]
                place += 1
            extra -= asks[head]
        if free < least:
            continue
        kept, smallest, whole = new, asks[head], new == head + 1
        for k in range(new, tail):
            fits = asks[k] <= free and (now + takes[k] <= shadow or asks[k] <= extra)
            if not fits:
                smallest = min(smallest, asks[k])
                if kept != k:
                    queue[kept], asks[kept], takes[kept] = queue[k], asks[k], takes[k]
                kept += 1
                continue
            job = queue[k]
            start[job], expected[job] = now, now + takes[k]
            free -= asks[k]
            if expected[job] > shadow:
                extra -= asks[k]
            running = push(end_times, end_jobs, running, now + run[job], job)
            first, last = insert(times, active, first, last, expected[job], job)
        tail = kept
        if whole:
            least = smallest
    return start
