"""Conformal shifts of log quantiles: each quantile is moved so that it would have held over the last ended jobs.

Split conformal prediction for quantile regression (Romano, Patterson, Candes 2019) on a rolling window. The level
follows the recent misses (adaptive conformal inference: Gibbs and Candes 2021). Users who have other jobs in the system
submit bursts of equal jobs, so there is a window for them, one for the others, and one for all, used while theirs is
short (Mondrian conformal prediction: Vovk 2005). A run that its limit ended enters with its limit: it is censored
there, and no quantile is ever above the limit. The guarantee holds on average over many days, not for each user.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

WINDOW: Final = 1000  # ended jobs used for the shifts: 500 to 2000 perform alike, fewer follow a change sooner
MIN_ENDS: Final = 200  # with fewer ends the bundle's own shifts are used
_RARE: Final = 0.02  # below this share of allowed misses a window needs twice as many ends
STEP: Final = 0.003  # step of the level, for each ended job
_LEAST, _MOST = 0.1, 4.0  # bounds of the level, as multiples of the target level
ROUNDING: Final = 1e-9  # relative difference that is rounding in the logarithm, not an under-estimate
_HUGE: Final = 700.0  # exp of it is still finite


class _Window:
    """The gaps of the last ended jobs, also sorted for each quantile."""

    def __init__(self, width: int, size: int) -> None:
        self._size = size
        self.gaps: deque[tuple[float, ...]] = deque()
        self.ordered: list[list[float]] = [[] for _ in range(width)]

    def push(self, gaps: tuple[float, ...]) -> None:
        self.gaps.append(gaps)
        for ordered, gap in zip(self.ordered, gaps, strict=True):
            insort(ordered, gap)
        if len(self.gaps) > self._size:
            for ordered, gap in zip(self.ordered, self.gaps.popleft(), strict=True):
                del ordered[bisect_left(ordered, gap)]

    def shift(self, i: int, missable: float) -> float:
        """Return the ceil((n + 1) * level)-th smallest gap of quantile i."""
        n = len(self.gaps)
        return self.ordered[i][min(n, max(1, math.ceil((n + 1) * (1.0 - missable)))) - 1]


class Shifts:
    """Additive corrections of q log quantiles; a gap is log(value) - raw, one for each quantile and ended job."""

    def __init__(
        self, quantiles: Sequence[float], start: Sequence[float], *, window: int = WINDOW, step: float = STEP
    ) -> None:
        self._aims = [1.0 - q for q in quantiles]
        self._missable = list(self._aims)  # share of jobs above the quantile that the shifts now aim for
        self._start = list(start) if len(start) else [0.0] * len(self._aims)
        self._least = [MIN_ENDS * 2 if aim < _RARE else MIN_ENDS for aim in self._aims]
        self._size, self._step = window, step
        self._fresh()

    def __len__(self) -> int:
        return len(self._all.gaps)

    def current(self, *, busy: bool = False) -> list[float]:
        """Return the shifts in force for a user with or without other jobs in the system."""
        own, whole = self._of[busy], self._all
        if len(whole.gaps) < MIN_ENDS:
            return self._start
        n = len(own.gaps)
        return [
            (own if n >= least else whole).shift(i, missable)
            for i, (missable, least) in enumerate(zip(self._missable, self._least, strict=True))
        ]

    def apply(self, raw: Sequence[float], cap: float | None = None, *, busy: bool = False) -> list[float]:
        """Return the quantiles in the target's unit: shifted, never falling with q, none above `cap`."""
        values = [math.exp(min(log_value, _HUGE)) for log_value in self._shifted(raw, busy)]
        return values if cap is None else [min(value, cap) for value in values]

    def observe(
        self, raw: Sequence[float], log_value: float, *, busy: bool = False, above: Sequence[bool] | None = None
    ) -> None:
        """Add a job's end: its raw log quantiles and `busy` as at its submission, and the log of its value.

        `above`: whether each quantile was exceeded, if the caller does not judge it by `log_value`. The value is at
        most the requested amount (targets.labels), so the cap of `apply` makes no difference here.
        """
        gaps = tuple(log_value - r for r in _rising(raw))
        if len(self) >= MIN_ENDS:
            found = above or [log_value - said > ROUNDING for said in self._shifted(raw, busy)]
            for i, (exceeded, aim) in enumerate(zip(found, self._aims, strict=True)):
                moved = self._missable[i] + self._step * (aim - exceeded)
                self._missable[i] = min(max(moved, _LEAST * aim), _MOST * aim, 1.0)
        self._all.push(gaps)
        self._of[busy].push(gaps)

    def pack(self) -> NDArray[np.float64]:
        """Return levels and windows as [1 + n, 1 + q]: first the shares of allowed misses, then window and gaps."""
        windows = (self._all, *self._of)
        gaps = [(float(number), *gap) for number, window in enumerate(windows) for gap in window.gaps]
        return np.array([(0.0, *self._missable), *gaps], dtype=np.float64)

    def unpack(self, rows: NDArray[np.float64]) -> None:
        """Load what `pack` returned. Raises ValueError."""
        whole = rows.ndim == 2 and rows.shape[1:] == (len(self._aims) + 1,) and len(rows) > 0  # noqa: PLR2004 a matrix
        if not whole or not np.isfinite(rows).all() or not np.isin(rows[:, 0], (0.0, 1.0, 2.0)).all():
            raise ValueError(f"gaps of {rows.shape}")
        bounds = [(_LEAST * aim, min(_MOST * aim, 1.0)) for aim in self._aims]
        self._missable = [min(max(v, lo), hi) for v, (lo, hi) in zip(rows[0, 1:].tolist(), bounds, strict=True)]
        self._fresh()
        windows = (self._all, *self._of)
        for number, *gaps in rows[1:].tolist():
            windows[int(number)].push(tuple(gaps))

    def _shifted(self, raw: Sequence[float], busy: bool) -> list[float]:
        """Return the logarithms of the quantiles, never falling with q."""
        shifts = self.current(busy=busy)
        return list(_rising([log_value + shift for log_value, shift in zip(_rising(raw), shifts, strict=True)]))

    def _fresh(self) -> None:
        self._all, *both = (_Window(len(self._aims), self._size) for _ in range(3))
        self._of = (both[0], both[1])


def _rising(raw: Sequence[float]) -> Iterable[float]:
    """Make the values non-decreasing: a higher quantile is at least the lower one."""
    return accumulate(raw, max)
