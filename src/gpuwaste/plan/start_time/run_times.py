"""Run times: quantiles of the share of the limit that ended jobs used, and draws from such quantiles.

Quantiles are of one user's jobs of one shape where enough of them have ended, else of the user's jobs, else of all
jobs. Draws are for waiting jobs, and for running jobs, given how long they have run.
"""

from collections import deque
from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.plan.start_time.scheduler_queue import LEVELS, NO_LIMIT_S, Ints, QueueJobs

Floats = NDArray[np.float64]
_LEVELS: Final = np.array(LEVELS)
_OVERDUE_S: Final = 60  # a job past its limit is believed to run this much longer (OverTimeLimit, KillWait)
_OWN: Final = 30  # ended jobs used of a user, or of a user's shape
_ALL: Final = 1000  # of all users
ENOUGH: Final = 5  # with fewer ended jobs the next wider group is used
_KEYS: Final = 200_000  # groups kept; the least recently used one is dropped


def drawn(jobs: QueueJobs, rng: np.random.Generator, draws: int) -> Ints:
    """Return run times [draws, n] in whole seconds, 1 to the limit."""
    shares = rng.random((draws, len(jobs.limit_s)))
    found = np.ceil(at_share(jobs.run_s, shares))
    return np.clip(found, 1, jobs.limit_s).astype(np.int64)


def drawn_rest(jobs: QueueJobs, rng: np.random.Generator, draws: int) -> Ints:
    """Return the remaining run times of running jobs, [draws, n] whole seconds, 1 to the rest of the limit.

    A run time is drawn given that it is longer than `since_s`; a job that has run longer than every quantile ends at
    any instant of the rest.
    """
    left = believed_rest(jobs)
    passed = share_below(jobs.run_s, jobs.since_s.astype(np.float64))
    fresh = rng.random((draws, len(jobs.limit_s)))
    found = np.ceil(at_share(jobs.run_s, passed + fresh * (1 - passed)) - jobs.since_s)
    found = np.where(passed >= 1, np.ceil(fresh * left), found)
    return np.clip(found, 1, left).astype(np.int64)


def median_rest(jobs: QueueJobs) -> Ints:
    """Return the median of the remaining run times, [n] whole seconds; as drawn_rest."""
    left = believed_rest(jobs)
    passed = share_below(jobs.run_s, jobs.since_s.astype(np.float64))
    found = np.ceil(at_share(jobs.run_s, (passed + 0.5 * (1 - passed))[None, :])[0] - jobs.since_s)
    rest: Ints = np.clip(np.where(passed >= 1, np.ceil(0.5 * left), found), 1, left).astype(np.int64)
    return rest


def believed_rest(jobs: QueueJobs) -> Ints:
    """Return the remaining run times that a scheduler believes: the rest of the limits, [n] seconds."""
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


class PastRuns:
    """Shares of the limit that ended jobs used; `observe` in the order of their ends."""

    def __init__(self) -> None:
        self._shares: dict[Hashable, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=_ALL)
        self._known: dict[Hashable, Floats] = {}
        self._fresh = 0

    def observe(self, user: Hashable, shape: Hashable, run_s: float, limit_s: float) -> None:
        """Take a job that has ended; one without a limit, or without a finite time, is ignored."""
        if not (0 < limit_s < NO_LIMIT_S) or not (0 <= run_s < NO_LIMIT_S):
            return
        share = min(run_s / limit_s, 1.0)
        for key in ((user,), (user, shape)):
            shares = self._shares.pop(key, None)
            shares = deque(maxlen=_OWN) if shares is None else shares
            shares.append(share)
            self._shares[key] = shares
            self._known.pop(key, None)
        if len(self._shares) > _KEYS:
            gone = next(iter(self._shares))
            del self._shares[gone]
            self._known.pop(gone, None)
        self._all.append(share)
        self._fresh += 1
        if self._fresh * 20 > len(self._all):  # of 1000 jobs, 50 change no quantile much
            self._known.pop((), None)
            self._fresh = 0

    def quantiles(self, user: Hashable, shape: Hashable, limit_s: float) -> Floats:
        """Return run times [LEVELS] in seconds; evenly spread up to the limit where no job has ended yet."""
        for key in ((user, shape), (user,)):
            shares = self._shares.get(key, ())
            if len(shares) >= ENOUGH:
                return self._of(key, shares) * limit_s
        return self._of((), self._all) * limit_s

    def _of(self, key: Hashable, shares: "deque[float] | tuple[float, ...]") -> Floats:
        found = self._known.get(key)
        if found is None:
            found = np.quantile(np.array(shares), LEVELS) if shares else np.array(LEVELS)
            # A short window does not show what fewer than ENOUGH jobs in 100 do: any job may reach its limit.
            found[-1] = 1.0
            self._known[key] = found
        return found
