"""Platt's scaling of a raw probability, refitted on the jobs that ended last (Platt 1999; prequential: Dawid 1984)."""

import math
from collections import deque
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.predict.manifest import Calibration

WINDOW: Final = 2000  # ended jobs that the fit looks at
EVERY: Final = 100  # ends between two fits
_PRIOR: Final = 20.0  # weight of the bundle's own calibration, in units of the fit's curvature: about 100 jobs
_STEPS: Final = 12  # of Newton's method; it converges in four to six
_EPS: Final = 1e-6  # bound of p before its logit, as in training
_TINY: Final = 1e-9


class Recalibration:
    """Starts from the bundle's calibration, and leaves it as far as the last WINDOW ends say."""

    def __init__(self, start: Calibration, *, window: int = WINDOW, every: int = EVERY) -> None:
        self._start = start
        self._pairs: deque[tuple[float, float]] = deque(maxlen=window)
        self._every = every
        self._since = 0
        self.current = start

    def __len__(self) -> int:
        return len(self._pairs)

    def apply(self, raw: float) -> float:
        """Return the calibrated probability of a raw one."""
        return _sigmoid(self.current.slope * _logit(raw) + self.current.offset)

    def observe(self, raw: float, label: float) -> None:
        """Take the raw probability that a job had at submission, and its label 0 or 1, at the job's end."""
        self._pairs.append((_logit(raw), label))
        self._since += 1
        if self._since >= self._every:
            self.refit()

    def refit(self) -> None:
        """Fit anew on the window; penalized towards the start, so that few jobs or one class change little."""
        self._since = 0
        if self._pairs:
            pairs = np.array(self._pairs, dtype=np.float64)
            self.current = _fit(pairs[:, 0], pairs[:, 1], self._start)

    def pack(self) -> NDArray[np.float64]:
        """Return the window [n, 2] as logit and label, with a first row of slope and offset."""
        return np.array([(self.current.slope, self.current.offset), *self._pairs], dtype=np.float64)

    def unpack(self, rows: NDArray[np.float64], since: int) -> None:
        """Take what `pack` returned, and the ends since the last fit. Raises ValueError."""
        if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) < 1 or not np.isfinite(rows).all():  # noqa: PLR2004 pairs
            raise ValueError(f"a window of {rows.shape}")
        self.current = Calibration(float(rows[0, 0]), float(rows[0, 1]))
        self._pairs.extend(_pairs(rows[1:]))
        self._since = since

    @property
    def since(self) -> int:
        """Ends since the last fit."""
        return self._since


def _fit(x: NDArray[np.float64], y: NDArray[np.float64], start: Calibration) -> Calibration:
    """Newton's method on the penalized log loss of p = sigmoid(slope * x + offset)."""
    slope, offset = start.slope, start.offset
    for _ in range(_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(slope * x + offset, -30, 30)))
        weight = p * (1 - p)
        gap = p - y
        g_slope = float(gap @ x) + _PRIOR * (slope - start.slope)
        g_offset = float(gap.sum()) + _PRIOR * (offset - start.offset)
        h_ss, h_so, h_oo = float(weight @ (x * x)) + _PRIOR, float(weight @ x), float(weight.sum()) + _PRIOR
        determinant = h_ss * h_oo - h_so * h_so
        d_slope = (h_oo * g_slope - h_so * g_offset) / determinant
        d_offset = (h_ss * g_offset - h_so * g_slope) / determinant
        slope, offset = slope - d_slope, offset - d_offset
        if abs(d_slope) + abs(d_offset) < _TINY:
            break
    # A negative slope would turn the order of the jobs round: then the raw number says nothing, and the rate is all.
    return Calibration(max(slope, 0.0), offset) if math.isfinite(slope + offset) else start


def _logit(raw: float) -> float:
    p = min(max(raw, _EPS), 1.0 - _EPS)
    return math.log(p / (1.0 - p))


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else 1.0 - 1.0 / (1.0 + math.exp(x))


def _pairs(rows: NDArray[np.float64]) -> Iterable[tuple[float, float]]:
    return ((float(a), float(b)) for a, b in rows)
