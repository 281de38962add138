"""What the queue of an instant's pool comes to when it is played forward: hints for the trees, in seconds."""

from typing import NamedTuple

import numpy as np

from gpuwaste.plan.start_time.checks import checked
from gpuwaste.plan.start_time.expectation import QUANTILES
from gpuwaste.plan.start_time.past_runs import PastRuns
from gpuwaste.plan.start_time.play import waits_of
from gpuwaste.plan.start_time.queue import LEVELS, Ints, QueueJobs, SchedulerQueue, jobs_in_pools, one_node_each
from gpuwaste.plan.waits.instant import JobRows, QueueInstant


class Simulated(NamedTuple):
    """Of a wait: p10, p50 and p90 with drawn run times, and what comes if every job uses its whole limit."""

    p10: float
    p50: float
    p90: float
    to_the_limit: float


def simulated(at: QueueInstant, past: PastRuns, draws: int, seed: int) -> list[Simulated]:
    """Return the waits of each row of `at.asked`, each as if it were submitted alone; 0 for one that fits no pool."""
    running = _jobs(at.running, past, at.now - at.running.start)
    waiting = _jobs(at.waiting, past, np.zeros(len(at.waiting.submit), np.int64))
    queue = checked(SchedulerQueue(at.now, one_node_each(at.capacity[None, :]), running, waiting))
    asked = _jobs(at.asked, past, np.zeros(len(at.asked.submit), np.int64))
    behind = [None] * len(at.asked.submit)
    found = np.quantile(np.maximum(waits_of(queue, asked, behind, draws, seed), 0), QUANTILES, 0, method="inverted_cdf")
    believed = queue._replace(running=_to_the_limit(queue.running), waiting=_to_the_limit(queue.waiting))
    longest = np.maximum(waits_of(believed, asked, behind, 1, 0)[0], 0)
    rows = np.column_stack((found.T, longest)).tolist()
    return [Simulated(*row) for row in rows]


def _jobs(rows: JobRows, past: PastRuns, since_s: Ints) -> QueueJobs:
    run = [
        past.quantiles(user, (procs, gpus, limit), limit)
        for user, procs, gpus, limit in zip(
            rows.user.tolist(), rows.procs.tolist(), rows.gpus.tolist(), rows.limit.tolist(), strict=True
        )
    ]
    quantiles = np.array(run, np.float64).reshape(len(run), len(LEVELS))
    return jobs_in_pools(rows.asks, rows.limit, quantiles, np.maximum(since_s, 0))


def _to_the_limit(jobs: QueueJobs) -> QueueJobs:
    return jobs._replace(run_s=np.repeat(jobs.limit_s[:, None].astype(np.float64), jobs.run_s.shape[1], axis=1))
