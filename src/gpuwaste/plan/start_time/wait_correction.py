"""Corrects quantiles of waits by a site's own errors: each is shifted so that it would have held for the last waits.

The shifts are those of walltimes (conformal_shifts.py): of logarithms, on a rolling window, with the level adapted to
recent misses. Waits below a minute are treated as equal, so a minute is added to each before its logarithm. Many jobs
do not wait at all, and no quantile divides equal waits into shares: waits below TIE_S are spread over it at random. The
level is adapted to real misses, in full seconds: a wait of p10 or p90 itself is inside. The correction learns from a
wait at its start, never earlier: until then its prediction is kept. A wait is compared with the first simulation of its
job, since later predictions know more.
"""

import math
import random
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.conformal_shifts import Shifts
from gpuwaste.plan.start_time.start_expectation import QUANTILES

FLOOR_S: Final = 60.0
TIE_S: Final = 2.0
WINDOW: Final = 3000  # waits: jobs of one burst wait equally, so 1000 of them hold less information than 1000 run times
_STEP: Final = 0.001  # of the level, for each start; as slow for the same reason
_LONGEST_S: Final = 10 * 366 * 86400.0  # no wait is expected to be longer
KEPT: Final = 100_000  # jobs; the oldest prediction is dropped first


def log_wait(wait_s: float) -> float:
    """Return the logarithm in which waits are compared; a negative wait counts as none."""
    return math.log(min(max(wait_s, 0.0), _LONGEST_S) + FLOOR_S)


class WaitShifts:
    """Corrects p10, p50 and p90 of waits, in seconds; feed `observe` in the order of the starts.

    With fewer than conformal_shifts.MIN_ENDS observed waits nothing is corrected.
    """

    def __init__(self) -> None:
        self._shifts = Shifts(QUANTILES, [0.0] * len(QUANTILES), window=WINDOW, step=_STEP)
        self._ties = random.Random(1)  # noqa: S311 not a secret

    def apply(self, waits_s: Sequence[float]) -> list[float]:
        """Return corrected quantiles in seconds, rising and not negative."""
        found = self._shifts.apply([log_wait(wait) for wait in waits_s])
        return [min(max(value - FLOOR_S, 0.0), _LONGEST_S) for value in found]

    def observe(self, waits_s: Sequence[float], waited_s: float) -> None:
        """Take the start of a job: the quantiles simulated for it, and its wait."""
        spread = waited_s if waited_s >= TIE_S else self._ties.random() * TIE_S
        first, middle, last = map(round, self.apply(waits_s))
        above = (waited_s >= first, spread > middle, waited_s > last)
        self._shifts.observe([log_wait(wait) for wait in waits_s], log_wait(spread), above=above)

    def pack(self) -> NDArray[np.float64]:
        """Return the learnt state, as Shifts.pack."""
        return self._shifts.pack()

    def unpack(self, rows: NDArray[np.float64]) -> None:
        """Restore what `pack` returned. Raises ValueError."""
        self._shifts.unpack(rows)


class OpenWaits:
    """Simulated p10, p50 and p90 of waits by job, in seconds; `shifts` learns at the starts, in their order."""

    def __init__(self, shifts: WaitShifts, *, kept: int = KEPT) -> None:
        self.shifts = shifts
        self._kept = kept
        self._said: dict[Hashable, tuple[float, ...]] = {}

    def __len__(self) -> int:
        return len(self._said)

    def said(self, job: Hashable, waits_s: Sequence[float]) -> None:
        """Take the simulated waits of a job, before any correction; only the first ones count."""
        if job in self._said or not all(math.isfinite(wait) for wait in waits_s):
            return
        self._said[job] = tuple(waits_s)
        if len(self._said) > self._kept:
            del self._said[next(iter(self._said))]

    def started(self, job: Hashable, waited_s: float) -> bool:
        """Take a start, with its wait since the prediction; return whether it was used. Each job is used once."""
        waits = self._said.pop(job, None)
        if waits is None or not math.isfinite(waited_s) or waited_s < 0:
            return False
        self.shifts.observe(waits, waited_s)
        return True

    def gone(self, job: Hashable) -> None:
        """Forget a job that left the queue without a start: nothing is learnt from it."""
        self._said.pop(job, None)
