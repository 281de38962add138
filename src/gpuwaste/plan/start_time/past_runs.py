"""How long jobs run, from those that have ended: quantiles of the share of the limit that was used.

For one user's jobs of one shape where enough of them have ended, else for the user's jobs, else for all jobs.
"""

from collections import deque
from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.plan.start_time.queue import LEVELS, NO_LIMIT_S

Floats = NDArray[np.float64]
_OWN: Final = 30  # ended jobs of a user, or of a user's shape, that are looked at
_ALL: Final = 1000  # of everybody
ENOUGH: Final = 5  # ended jobs below which the next wider group is asked
_KEYS: Final = 200_000  # groups kept; the one that was used longest ago goes


class PastRuns:
    """Shares of the limit that ended jobs used; `observe` in the order of their ends."""

    def __init__(self) -> None:
        self._shares: dict[Hashable, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=_ALL)
        self._known: dict[Hashable, Floats] = {}
        self._fresh = 0

    def observe(self, user: Hashable, shape: Hashable, run_s: float, limit_s: float) -> None:
        """Take a job that has ended; one without a limit, or of no finite time, teaches nothing."""
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
        if self._fresh * 20 > len(self._all):  # of a thousand jobs, fifty change no quantile much
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
            # What fewer than ENOUGH jobs in a hundred do is not in a short window: any of them may reach its limit.
            found[-1] = 1.0
            self._known[key] = found
        return found
