"""Metrics of predictions: the figures of the card and of the scorecard, each with its definition."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_curve

from gpuwaste.advice.predict.drift import short
from gpuwaste.advice.predict.model_comparison import drawn_weights

Array = NDArray[np.float64]
ECE_BINS: Final = 15  # Guo et al., On Calibration of Modern Neural Networks (2017): equal widths
_REPEATS: Final = 200


@dataclass(frozen=True, slots=True)
class MetricInterval:
    """One metric with the 2.5 % and 97.5 % points of its bootstrap; NaN: no such value, or not drawn."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


def average_precision(y: Array, p: Array, weight: Array | None = None) -> float:
    """Area under precision over recall, stepwise; NaN where one class is missing."""
    return float(average_precision_score(y, p, sample_weight=weight)) if 0 < y.mean() < 1 else float("nan")


def f1(y: Array, said: NDArray[np.bool_], weight: Array | None = None) -> float:
    """Harmonic mean of precision and recall; 0 where nothing was found."""
    w = np.ones(len(y)) if weight is None else weight
    hits = float(w[said & (y == 1)].sum())
    total = float(w[said].sum() + w[y == 1].sum())
    return 2 * hits / total if total else float("nan")


def best_f1_threshold(y: Array, p: Array) -> float:
    """Return the p from which on predicting "yes" has the highest F1; for validation rows only."""
    precision, recall, thresholds = precision_recall_curve(y, p)
    score = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    return float(thresholds[int(np.argmax(score[:-1]))])


def ece(y: Array, p: Array, weight: Array | None = None) -> float:
    """Return the expected calibration error: |mean p - share of positives| by bin of p, averaged over the rows."""
    w = np.ones(len(y)) if weight is None else weight
    bins = np.minimum((p * ECE_BINS).astype(int), ECE_BINS - 1)
    gap = np.bincount(bins, w * (p - y), minlength=ECE_BINS)
    return float(np.abs(gap).sum() / w.sum())


def under_rate(run_s: Array, limit_s: Array, weight: Array | None = None) -> float:
    """Return the share of runs for which this limit would have been too short."""
    return float(np.average(short(limit_s, run_s), weights=weight))


def reserved_over_used(run_s: Array, limit_s: Array, cpus: Array, weight: Array | None = None) -> float:
    """Return processor-seconds reserved by these limits over those used; limits that are too short count unchanged."""
    w = np.ones(len(run_s)) if weight is None else weight
    return float((w * limit_s * cpus).sum() / (w * run_s * cpus).sum())


def bootstrap_by_user(users: NDArray[np.int32], metric: Callable[[Array], float], seed: int = 1) -> MetricInterval:
    """Draw users, with all their rows, with replacement; `metric` takes each row's weight (draws of its user).

    See user_draws.
    """
    values = np.array([metric(weight) for weight in drawn_weights(users, _REPEATS, seed)])
    low, high = np.nanpercentile(values, (2.5, 97.5)) if np.isfinite(values).any() else (np.nan, np.nan)
    return MetricInterval(metric(np.ones(len(users))), float(low), float(high))


def worst_decile(users: NDArray[np.int32], loss: Array) -> tuple[float, float]:
    """Return the mean over users of their mean loss, and that of the worst tenth of users (at least one)."""
    _, inverse = np.unique(users, return_inverse=True)
    by_user = np.sort(np.bincount(inverse, loss) / np.bincount(inverse))[::-1]
    return float(by_user.mean()), float(by_user[: max(1, len(by_user) // 10)].mean())
