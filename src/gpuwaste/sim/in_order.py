"""Jobs that start strictly in an order, none before the one in front of it: what FCFS and SJF share."""

import numpy as np

from gpuwaste.sim.believed_times import believed_of, ended, no_runs
from gpuwaste.sim.compiled import compiled
from gpuwaste.sim.ends import pop, push
from gpuwaste.sim.trace import Ints, Planned


@compiled
def starts_in_order(jobs: Planned, total: int, by_walltime: bool) -> Ints:
    """Return the start of each job: in the order of submission, or the shortest believed walltime first."""
    submit, run, believed, limit, procs, user = jobs
    n = len(submit)
    start = np.full(n, -1, dtype=np.int64)
    room = min(n, total)
    end_times, end_jobs, running = np.empty(room, np.int64), np.empty(room, np.int64), 0
    keys, queue, waiting = np.empty(n, np.int64), np.empty(n, np.int64), 0
    free, arrived = total, 0
    learns, runs = len(user) > 0, no_runs(user)
    while arrived < n or running > 0:
        now = end_times[0] if running > 0 else submit[arrived]
        if arrived < n and submit[arrived] < now:
            now = submit[arrived]
        while running > 0 and end_times[0] == now:
            job = end_jobs[0]
            running = pop(end_times, end_jobs, running)
            free += procs[job]
            if learns:
                ended(runs, user[job], run[job])
        while arrived < n and submit[arrived] == now:
            key = 0
            if by_walltime:
                key = believed_of(runs, user[arrived], limit[arrived]) if learns else believed[arrived]
            waiting = push(keys, queue, waiting, key, arrived)
            arrived += 1
        while waiting > 0 and procs[queue[0]] <= free:
            job = queue[0]
            waiting = pop(keys, queue, waiting)
            start[job] = now
            free -= procs[job]
            running = push(end_times, end_jobs, running, now + run[job], job)
    return start
