"""Conformal shifts of log quantiles: each quantile is moved so that it would have held over the jobs that ended last.

Split conformal prediction for quantile regression (Romano, Patterson, Candes 2019) with a rolling window. A run that
its limit ended enters with its limit: it is censored there, and no quantile above the limit is ever said.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

WINDOW: Final = 2000  # ended jobs that the shifts look at
MIN_ENDS: Final = 200  # ends below which the bundle's own shifts stand


class Shifts:
    """Additive corrections of q log quantiles; a gap is log(value) - raw, one for each quantile and ended job."""

    def __init__(self, quantiles: Sequence[float], start: Sequence[float], *, window: int = WINDOW) -> None:
        self._quantiles = tuple(quantiles)
        self._start = list(start) if len(start) else [0.0] * len(self._quantiles)
        self._window = window
        self._gaps: deque[tuple[float, ...]] = deque()
        self._sorted: list[list[float]] = [[] for _ in self._quantiles]

    def __len__(self) -> int:
        return len(self._gaps)

    @property
    def current(self) -> list[float]:
        """The shifts in force: the ceil((n + 1) q)-th smallest gap of the window, or the bundle's at first."""
        n = len(self._gaps)
        if n < MIN_ENDS:
            return self._start
        return [s[min(n, math.ceil((n + 1) * q)) - 1] for s, q in zip(self._sorted, self._quantiles, strict=True)]

    def apply(self, raw: Sequence[float], cap: float | None = None) -> list[float]:
        """Return the quantiles in the target's unit: shifted, never falling with q, none above `cap`."""
        highest, values = -math.inf, []
        for log_value, shift in zip(raw, self.current, strict=True):
            highest = max(highest, log_value + shift)
            value = math.exp(min(highest, 700.0))
            values.append(value if cap is None or not value > cap else cap)
        return values

    def observe(self, raw: Sequence[float], log_value: float) -> None:
        """Take the raw log quantiles that a job had at submission, and the log of what it took, at the job's end."""
        gaps = tuple(log_value - r for r in raw)
        self._gaps.append(gaps)
        for ordered, gap in zip(self._sorted, gaps, strict=True):
            insort(ordered, gap)
        if len(self._gaps) > self._window:
            for ordered, gap in zip(self._sorted, self._gaps.popleft(), strict=True):
                del ordered[bisect_left(ordered, gap)]

    def pack(self) -> NDArray[np.float64]:
        """Return the window as gaps [n, q], the oldest first."""
        return np.array(self._gaps, dtype=np.float64).reshape(-1, len(self._quantiles))

    def unpack(self, rows: NDArray[np.float64]) -> None:
        """Take what `pack` returned. Raises ValueError."""
        if rows.ndim != 2 or rows.shape[1] != len(self._quantiles) or not np.isfinite(rows).all():  # noqa: PLR2004
            raise ValueError(f"gaps of {rows.shape}")
        self._gaps.extend(tuple(float(g) for g in row) for row in rows[-self._window :])
        self._sorted = [sorted(column) for column in zip(*self._gaps, strict=True)] or self._sorted
