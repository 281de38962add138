"""Predictions of jobs that still wait, kept until their starts teach the correction.

What was simulated when a job was first asked about is what its wait is measured against, later predictions know more.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Final

from gpuwaste.plan.start_time.correction import WaitShifts

KEPT: Final = 100_000  # jobs; the one that has waited longest is given up first


class OpenWaits:
    """Simulated p10, p50 and p90 of waits by job, in seconds; `shifts` learns at the starts, in their order."""

    def __init__(self, shifts: WaitShifts, *, kept: int = KEPT) -> None:
        self.shifts = shifts
        self._kept = kept
        self._said: dict[Hashable, tuple[float, ...]] = {}

    def __len__(self) -> int:
        return len(self._said)

    def said(self, job: Hashable, waits_s: Sequence[float]) -> None:
        """Take what was simulated of a job, before any correction; only the first time counts."""
        if job in self._said or not all(math.isfinite(wait) for wait in waits_s):
            return
        self._said[job] = tuple(waits_s)
        if len(self._said) > self._kept:
            del self._said[next(iter(self._said))]

    def started(self, job: Hashable, waited_s: float) -> bool:
        """Take a start, counted from the prediction; returns whether it taught anything. It does so once."""
        waits = self._said.pop(job, None)
        if waits is None or not math.isfinite(waited_s) or waited_s < 0:
            return False
        self.shifts.observe(waits, waited_s)
        return True

    def gone(self, job: Hashable) -> None:
        """Forget a job that left the queue without a start: it says nothing about waits."""
        self._said.pop(job, None)
