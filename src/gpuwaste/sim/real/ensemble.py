"""Figures of a run, and of several runs together: means with their intervals, and how far starts are apart."""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gpuwaste.core.units import MINUTE_S
from gpuwaste.sim.metrics import SHORTEST_S
from gpuwaste.sim.real.document import Agreement, RealRun
from gpuwaste.sim.real.jobs import TraceSubmission
from gpuwaste.sim.real.outcomes import ReplayedOutcome

_NEAR_S: Final = 5


def run_figures(
    number: int, outcomes: Sequence[ReplayedOutcome], jobs: Sequence[TraceSubmission], *, complete: bool, wall_s: float
) -> RealRun:
    """Return a run's figures over the jobs that ended after they started."""
    states = dict(sorted(Counter(each.ended.state for each in outcomes).items()))
    run_s = {(job.job_id, job.submit): min(job.sleep_s, job.limit_s) for job in jobs}
    return RealRun(number=number, complete=complete, states=states, wall_s=round(wall_s, 1), **_values(outcomes, run_s))


def _values(outcomes: Sequence[ReplayedOutcome], run_s: dict[tuple[int, int], int]) -> dict[str, Any]:
    rows = [
        (
            each.submit,
            each.ended.submitted,
            each.ended.start,
            each.ended.end,
            run_s.get((each.job_id, each.submit), each.ended.end - each.ended.start),
        )
        for each in outcomes
        if each.ended.submitted is not None and each.ended.start is not None and each.ended.end is not None
    ]
    if not rows:
        return {}
    submit, submitted, start, end, nominal = np.array(rows, dtype=np.int64).T
    wait, run = start - submitted, end - start
    p50, p95 = np.percentile(wait, [50, 95])
    return {
        "mean_wait_s": round(float(wait.mean()), 3),
        "p50_wait_s": round(float(p50), 3),
        "p95_wait_s": round(float(p95), 3),
        "max_wait_s": float(wait.max()),
        "mean_bounded_slowdown": round(float(np.maximum((wait + run) / np.maximum(run, SHORTEST_S), 1.0).mean()), 4),
        "makespan_s": float(end.max() - submit.min()),
        "p95_submitted_late_s": round(float(np.percentile(submitted - submit, 95)), 3),
        "mean_ran_longer_s": round(float((run - nominal).mean()), 3),
    }


def agreement(runs: Sequence[Sequence[ReplayedOutcome]]) -> Agreement | None:
    """Return how far the starts of each job are apart, over all pairs of runs; None for less than two."""
    starts = [
        {(each.job_id, each.submit): each.ended.start for each in run if each.ended.start is not None} for run in runs
    ]
    apart = [
        abs(one[job] - other[job])
        for one, other in itertools.combinations(starts, 2)
        for job in one.keys() & other.keys()
    ]
    if not apart:
        return None
    pairs = len(runs) * (len(runs) - 1) // 2
    found = np.array(apart)
    return Agreement(
        pairs=pairs,
        median_start_s=float(np.median(found)),
        within_5_s=round(float(np.mean(found <= _NEAR_S)), 6),
        within_60_s=round(float(np.mean(found <= MINUTE_S)), 6),
    )
