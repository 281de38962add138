"""Conformal shifts of log quantiles: each quantile is moved so that it would have held over the jobs that ended last.

Split conformal prediction for quantile regression (Romano, Patterson, Candes 2019) on a rolling window, with the level
led by what was missed lately (adaptive conformal inference: Gibbs and Candes 2021). A run that its limit ended enters
with its limit: it is censored there, and no quantile above the limit is ever said.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

WINDOW: Final = 1000  # ended jobs that the shifts look at: 500 to 2000 do alike, shorter follows a change sooner
MIN_ENDS: Final = 200  # ends below which the bundle's own shifts stand
_STEP: Final = 0.003  # of the level, for each ended job
_LEAST, _MOST = 0.1, 4.0  # bounds of the level, as multiples of the one aimed at
_HUGE: Final = 700.0  # exp of it is still finite


class Shifts:
    """Additive corrections of q log quantiles; a gap is log(value) - raw, one for each quantile and ended job."""

    def __init__(self, quantiles: Sequence[float], start: Sequence[float], *, window: int = WINDOW) -> None:
        self._aims = [1.0 - q for q in quantiles]
        self._missable = list(self._aims)  # share of jobs above the quantile that the shifts now aim at
        self._start = list(start) if len(start) else [0.0] * len(self._aims)
        self._window = window
        self._gaps: deque[tuple[float, ...]] = deque()
        self._sorted: list[list[float]] = [[] for _ in self._aims]

    def __len__(self) -> int:
        return len(self._gaps)

    @property
    def current(self) -> list[float]:
        """The shifts in force: the ceil((n + 1) * level)-th smallest gap of the window, or the bundle's at first."""
        n = len(self._gaps)
        if n < MIN_ENDS:
            return self._start
        ranks = (min(n, math.ceil((n + 1) * (1.0 - missable))) for missable in self._missable)
        return [ordered[rank - 1] for ordered, rank in zip(self._sorted, ranks, strict=True)]

    def apply(self, raw: Sequence[float], cap: float | None = None) -> list[float]:
        """Return the quantiles in the target's unit: shifted, never falling with q, none above `cap`."""
        highest, values = -math.inf, []
        for log_value, shift in zip(raw, self.current, strict=True):
            highest = max(highest, log_value + shift)
            value = math.exp(min(highest, _HUGE))
            values.append(cap if cap is not None and value > cap else value)
        return values

    def observe(self, raw: Sequence[float], log_value: float) -> None:
        """Take the raw log quantiles that a job had at submission, and the log of what it took, at the job's end."""
        gaps = tuple(log_value - r for r in raw)
        if len(self._gaps) >= MIN_ENDS:
            for i, (gap, shift) in enumerate(zip(gaps, self.current, strict=True)):
                aim = self._aims[i]
                moved = self._missable[i] + _STEP * (aim - (gap > shift))
                self._missable[i] = min(max(moved, _LEAST * aim), _MOST * aim, 1.0)
        self._gaps.append(gaps)
        for ordered, gap in zip(self._sorted, gaps, strict=True):
            insort(ordered, gap)
        if len(self._gaps) > self._window:
            for ordered, gap in zip(self._sorted, self._gaps.popleft(), strict=True):
                del ordered[bisect_left(ordered, gap)]

    def pack(self) -> NDArray[np.float64]:
        """Return the levels and the window as [1 + n, q]: first the shares that may be missed, then the gaps."""
        return np.array([tuple(self._missable), *self._gaps], dtype=np.float64)

    def unpack(self, rows: NDArray[np.float64]) -> None:
        """Take what `pack` returned. Raises ValueError."""
        whole = rows.ndim == 2 and rows.shape[1:] == (len(self._aims),) and len(rows) > 0  # noqa: PLR2004 rows, columns
        if not whole or not np.isfinite(rows).all():
            raise ValueError(f"gaps of {rows.shape}")
        bounds = [(_LEAST * aim, min(_MOST * aim, 1.0)) for aim in self._aims]
        self._missable = [min(max(v, lo), hi) for v, (lo, hi) in zip(rows[0].tolist(), bounds, strict=True)]
        self._gaps = deque(tuple(row) for row in rows[1:][-self._window :].tolist())
        self._sorted = [sorted(gaps[i] for gaps in self._gaps) for i in range(len(self._aims))]
