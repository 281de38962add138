"""Platt's scaling of a raw probability, refitted on the last ended jobs (Platt 1999; prequential: Dawid 1984)."""

import math
from collections import deque
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.manifest import PlattScaling

WINDOW: Final = 2000  # ended jobs used for the fit
EVERY: Final = 100  # ends between two fits
_PRIOR: Final = 5.0  # curvature of the pull towards the bundle's own calibration: about that of 40 jobs
_FEW: Final = 150  # with fewer jobs of a class the slope stays the bundle's: a slope from few jobs is unstable
_HELD: Final = 1e6
_Array = NDArray[np.float64]
_STEPS: Final = 20  # of Newton's method; it converges in four to eight
_FLAT: Final = 30.0  # margin above which the sigmoid is flat in float64
_EPS: Final = 1e-6  # bound of p before its logit, as in training
_TINY: Final = 1e-9


class Recalibration:
    """Starts from the bundle's calibration, and moves away from it as far as the last WINDOW ends require."""

    def __init__(self, start: PlattScaling, *, window: int = WINDOW, every: int = EVERY) -> None:
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
        """Add an ended job: its raw probability at submission, and its label 0 or 1."""
        self._pairs.append((_logit(raw), label))
        self._since += 1
        if self._since >= self._every:
            self.refit()

    def refit(self) -> None:
        """Fit again on the window; penalized towards the start, so that few jobs or one class change little."""
        self._since = 0
        if self._pairs:
            pairs = np.array(self._pairs, dtype=np.float64)
            self.current = _fit(pairs[:, 0], pairs[:, 1], self._start)

    def pack(self) -> NDArray[np.float64]:
        """Return the window [n, 2] as logit and label, with a first row of slope and offset."""
        return np.array([(self.current.slope, self.current.offset), *self._pairs], dtype=np.float64)

    def unpack(self, rows: NDArray[np.float64], since: int) -> None:
        """Load what `pack` returned, and the number of ends since the last fit. Raises ValueError."""
        if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) < 1 or not np.isfinite(rows).all():  # noqa: PLR2004 pairs
            raise ValueError(f"a window of {rows.shape}")
        self.current = PlattScaling(float(rows[0, 0]), float(rows[0, 1]))
        self._pairs.extend(_pairs(rows[1:]))
        self._since = since

    @property
    def since(self) -> int:
        """Ends since the last fit."""
        return self._since


def _fit(x: NDArray[np.float64], y: NDArray[np.float64], start: PlattScaling) -> PlattScaling:
    """Minimize the penalized log loss of p = sigmoid(slope * x + offset): Newton's steps, halved until they help."""
    at = np.array([start.slope, start.offset])
    origin = at.copy()
    few = min(float(y.sum()), len(y) - float(y.sum())) < _FEW
    prior = np.array([_HELD if few else _PRIOR, _PRIOR])
    loss = _loss(at, x, y, origin, prior)
    for _ in range(_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(at[0] * x + at[1], -_FLAT, _FLAT)))
        weight, gap = p * (1 - p), p - y
        gradient = np.array([gap @ x, gap.sum()]) + prior * (at - origin)
        mixed = weight @ x
        curvature = np.array([[weight @ (x * x) + prior[0], mixed], [mixed, weight.sum() + prior[1]]])
        step = np.linalg.solve(curvature, gradient)
        after = _loss(at - step, x, y, origin, prior)
        while after > loss and np.abs(step).sum() > _TINY:
            step /= 2
            after = _loss(at - step, x, y, origin, prior)
        at, loss = at - step, after
        if np.abs(step).sum() <= _TINY:
            break
    # A negative slope would reverse the order of the jobs: the raw number is useless then, and only the rate is used.
    return PlattScaling(float(at[0]), float(at[1])) if at[0] >= 0 else _rate(y, start)


def _loss(at: _Array, x: _Array, y: _Array, origin: _Array, prior: _Array) -> float:
    margin = at[0] * x + at[1]
    return float((np.logaddexp(0.0, margin) - y * margin).sum() + prior @ (at - origin) ** 2 / 2)


def _rate(y: NDArray[np.float64], start: PlattScaling) -> PlattScaling:
    """Return the constant that predicts the share of positives, penalized as the fit is."""
    rate = (float(y.sum()) + 0.5) / (len(y) + 1.0)
    trust = len(y) / (len(y) + _PRIOR)
    return PlattScaling(0.0, trust * math.log(rate / (1 - rate)) + (1 - trust) * start.offset)


def _logit(raw: float) -> float:
    p = min(max(raw, _EPS), 1.0 - _EPS)
    return math.log(p / (1.0 - p))


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else 1.0 - 1.0 / (1.0 + math.exp(x))


def _pairs(rows: NDArray[np.float64]) -> Iterable[tuple[float, float]]:
    return ((float(a), float(b)) for a, b in rows)
