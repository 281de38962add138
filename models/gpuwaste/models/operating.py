"""Operating points: from which probability on a site warns, and from which on it may reject."""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve

REJECT_PRECISION: Final = 0.95
_MIN_SAID: Final = 20  # jobs above a threshold, below which its precision is hearsay
_BETA: Final = 2.0  # of the F-score for warnings: recall counts twice


def operating_points(y: NDArray[np.float64], p: NDArray[np.float64]) -> dict[str, float]:
    """Return p by name from validation rows: f1 (best F1), warn (best F2), reject (precision of 0.95 or better).

    A point that validation does not support is absent.
    """
    if not len(y) or not 0 < y.mean() < 1:
        return {}
    precision, recall, at = precision_recall_curve(y, p)
    precision, recall = precision[:-1], recall[:-1]
    points = {"f1": _best(precision, recall, at, 1.0), "warn": _best(precision, recall, at, _BETA)}
    said = len(p) - np.searchsorted(np.sort(p), at)
    good = (precision >= REJECT_PRECISION) & (said >= _MIN_SAID)
    if good.any():
        points["reject"] = float(at[good].min())
    return points


def _best(precision: NDArray[np.float64], recall: NDArray[np.float64], at: NDArray[np.float64], beta: float) -> float:
    score = (1 + beta**2) * precision * recall / np.maximum(beta**2 * precision + recall, 1e-12)
    return float(at[int(np.argmax(score))])
