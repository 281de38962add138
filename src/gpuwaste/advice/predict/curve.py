"""Precision over recall for many weightings of the same rows: sorted once, as a bootstrap needs it."""

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.table import Floats

_NAN = float("nan")


class Curve:
    """Labels `y` (0 and 1) and probabilities `p` of n rows; rows of equal p are named together.

    Equal to scikit-learn's average_precision_score and precision_recall_curve, which sort at every call.
    """

    def __init__(self, y: Floats, p: Floats) -> None:
        self._order = np.argsort(-p, kind="stable")
        self._y = y[self._order]
        self._last = np.flatnonzero(np.append(np.diff(p[self._order]) != 0, values=len(p) > 0))

    def average_precision(self, weight: Floats) -> float:
        """Return the area, stepwise; NaN where the weighted rows are of one class."""
        precision, recall = self._points(weight)
        if not len(recall):
            return _NAN
        return float((np.diff(recall, prepend=0.0) * precision).sum())

    def recall_at(self, precision: float, weight: Floats) -> float:
        """Return the largest recall at this precision or better, 0 where there is none, NaN as above."""
        found, recall = self._points(weight)
        return float(recall[found >= precision].max(initial=0.0)) if len(recall) else _NAN

    def _points(self, weight: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        w = weight[self._order]
        total, hits = np.cumsum(w)[self._last], np.cumsum(w * self._y)[self._last]
        if not len(hits) or not 0 < hits[-1] < total[-1]:
            return np.empty(0), np.empty(0)
        said = total > 0
        return hits[said] / total[said], hits[said] / hits[-1]
