"""Logs of waits for the tests: drawn queues that a scheduler of no kind made."""

import numpy as np

from gpuwaste.models.waits.queue_at import WaitLog, most_held


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
    capacity = np.array([most_held(start, gone, procs, pool == p) for p in range(2)], np.int64)
    return WaitLog(
        submit, start, gone, procs, limit, rng.integers(0, 5, count), rng.integers(0, 2, count), pool, capacity
    )
