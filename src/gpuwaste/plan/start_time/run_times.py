"""Run times drawn from quantiles: of jobs that wait, and of jobs that run, given how long they have run."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.plan.start_time.queue import LEVELS, Ints, QueueJobs

Floats = NDArray[np.float64]
_LEVELS: Final = np.array(LEVELS)
_OVERDUE_S: Final = 60  # what a job is believed to run on that has passed its limit (OverTimeLimit, KillWait)


def drawn(jobs: QueueJobs, rng: np.random.Generator, draws: int) -> Ints:
    """Return run times [draws, n] in whole seconds, 1 to the limit."""
    shares = rng.random((draws, len(jobs.limit_s)))
    found = np.ceil(at_share(jobs.run_s, shares))
    return np.clip(found, 1, jobs.limit_s).astype(np.int64)


def drawn_rest(jobs: QueueJobs, rng: np.random.Generator, draws: int) -> Ints:
    """Return what running jobs run on, [draws, n] whole seconds, at least 1 and at most what is left of the limit.

    A run time is drawn given that it is longer than `since_s`; a job that has outlived every quantile ends at any
    instant of what is left.
    """
    left = believed_rest(jobs)
    passed = share_below(jobs.run_s, jobs.since_s.astype(np.float64))
    fresh = rng.random((draws, len(jobs.limit_s)))
    found = np.ceil(at_share(jobs.run_s, passed + fresh * (1 - passed)) - jobs.since_s)
    found = np.where(passed >= 1, np.ceil(fresh * left), found)
    return np.clip(found, 1, left).astype(np.int64)


def median_rest(jobs: QueueJobs) -> Ints:
    """Return what half of such running jobs run on at most, [n] whole seconds; as drawn_rest."""
    left = believed_rest(jobs)
    passed = share_below(jobs.run_s, jobs.since_s.astype(np.float64))
    found = np.ceil(at_share(jobs.run_s, (passed + 0.5 * (1 - passed))[None, :])[0] - jobs.since_s)
    rest: Ints = np.clip(np.where(passed >= 1, np.ceil(0.5 * left), found), 1, left).astype(np.int64)
    return rest


def believed_rest(jobs: QueueJobs) -> Ints:
    """Return what a scheduler believes of running jobs: what is left of their limits, [n] seconds."""
    left = jobs.limit_s - jobs.since_s
    return np.where(left < 1, _OVERDUE_S, left)


def at_share(quantiles: Floats, shares: Floats) -> Floats:
    """Return run times [draws, n] at shares [draws, n] of the quantiles [n, LEVELS], linear between them."""
    above = np.clip(np.searchsorted(_LEVELS, shares, side="right"), 1, len(LEVELS) - 1)
    rows = np.arange(len(quantiles))
    low, high = quantiles[rows, above - 1], quantiles[rows, above]
    weight = (shares - _LEVELS[above - 1]) / (_LEVELS[above] - _LEVELS[above - 1])
    found: Floats = low + weight * (high - low)
    return found


def share_below(quantiles: Floats, values: Floats) -> Floats:
    """Return the share [n] of run times that are at most `values` [n]: the inverse of at_share, 1 beyond the last."""
    place = (quantiles <= values[:, None]).sum(axis=1)
    above = np.clip(place, 1, len(LEVELS) - 1)
    rows = np.arange(len(quantiles))
    low, high = quantiles[rows, above - 1], quantiles[rows, above]
    span = np.where(high > low, high - low, 1.0)
    share = _LEVELS[above - 1] + (values - low) / span * (_LEVELS[above] - _LEVELS[above - 1])
    return np.where(place == len(LEVELS), 1.0, np.where(place == 0, 0.0, np.clip(share, 0.0, 1.0)))
