"""Logs of waits for the tests: drawn queues that a scheduler of no kind made."""

import numpy as np

from gpuwaste.models.wait_replay import WaitLog, most_held
from gpuwaste.plan.wait_knowledge import JobRows


def drawn_log(count: int, seed: int = 3) -> WaitLog:
    """Return jobs of two partitions; every ninth never starts and leaves the queue."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 300 * count, count))
    start = submit + np.where(rng.random(count) < 0.4, 0, rng.integers(1, 20_000, count))
    gone = start + rng.integers(0, 5000, count)
    never = np.arange(count) % 9 == 8
    start[never] = -1
    procs, limit = rng.integers(1, 9, count), rng.integers(60, 7200, count)
    pool = rng.integers(0, 2, count)
    users, accounts = rng.integers(0, 5, count), rng.integers(0, 2, count)
    gpus = rng.integers(0, 3, count)
    jobs = JobRows(submit, start, procs, gpus, limit, users, accounts, pool, np.zeros(count, np.int64))
    capacity = [
        [most_held(start[pool == p], gone[pool == p], amount[pool == p]) for amount in (procs, gpus)] for p in range(2)
    ]
    return WaitLog(jobs, gone, np.array(capacity, np.int64), ("one", "two"))
