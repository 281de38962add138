"""The figures of one answer: values with intervals by user, the mean over users and over the worst tenth of them."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.drift import short
from gpuwaste.advice.predict.model_comparison import Curve
from gpuwaste.jobs.history.job_table import Floats
from gpuwaste.models import prediction_metrics as metrics
from gpuwaste.models.evaluate.method import MethodAnswer
from gpuwaste.models.prediction_metrics import MetricInterval, bootstrap_by_user, worst_decile

PRECISION: Final = 0.95
MIN_TEST: Final = 20  # with fewer labelled test rows figures are meaningless
_NAN: Final = float("nan")


Figures = dict[str, MetricInterval]
Metric = Callable[[Floats], float]


def of_probability(y: Floats, answer: MethodAnswer, users: NDArray[np.int32], *, intervals: bool = True) -> Figures:
    """Return the figures of probabilities; a row's loss for the comparison of users is Brier's."""
    p, said = answer.values, answer.values >= answer.threshold
    right, loss, curve = (said == (y == 1)).astype(np.float64), (answer.values - y) ** 2, Curve(y, p)
    figures = _drawn(
        {
            "average_precision": curve.average_precision,
            "f1": lambda w: metrics.f1(y, said, w),
            "accuracy": lambda w: float(np.average(right, weights=w)),
            "recall_at_precision_0.95": lambda w: curve.recall_at(PRECISION, w),
            "ece": lambda w: metrics.ece(y, p, w),
            "brier": lambda w: float(np.average(loss, weights=w)),
        },
        users,
        intervals,
    )
    mean, worst = worst_decile(users, loss)
    reject = p >= answer.reject
    hits = float((reject & (y == 1)).sum())
    figures |= {
        "brier_by_user": MetricInterval(mean),
        "brier_worst_decile": MetricInterval(worst),
        "threshold": MetricInterval(answer.threshold),
        "reject_share": MetricInterval(float(reject.mean()) if np.isfinite(answer.reject) else _NAN),
        "reject_precision": MetricInterval(hits / reject.sum() if reject.any() else _NAN),
        "base_rate": MetricInterval(float(y.mean())),
    }
    return figures | _size(users)


def of_quantiles(
    y: Floats, answer: MethodAnswer, weight: Floats, users: NDArray[np.int32], *, intervals: bool = True
) -> Figures:
    """Return the figures of limits, by level; `weight` (processors) weights reserved over used.

    Rows without a limit (inf) are never under-estimated, and their reservation cannot be counted: reserved over used is
    over the others, whose share is `limited`.
    """
    figures: Figures = {}
    ones = np.ones(len(y))
    names = [_level(q) for q in answer.levels] or [""]
    for name, limit in zip(names, answer.values.T, strict=True):
        known = np.isfinite(limit)
        too_short = short(limit, y).astype(np.float64)
        kept = np.where(known, limit, 0.0)
        kinds: dict[str, Metric] = {
            f"under_rate{name}": lambda w, s=too_short: float(np.average(s, weights=w)),  # type: ignore[misc]
            f"reserved_over_used{name}": _reserved(y, kept, weight * known),
            f"reserved_over_used_unweighted{name}": _reserved(y, kept, ones * known),
        }
        figures |= _drawn(kinds, users, intervals)
        mean, worst = worst_decile(users, too_short)
        figures[f"under_rate_by_user{name}"] = MetricInterval(mean)
        figures[f"under_rate_worst_decile{name}"] = MetricInterval(worst)
        figures[f"coverage{name}"] = MetricInterval(float(1 - too_short.mean()))
        figures[f"limited{name}"] = MetricInterval(float(known.mean()))
    return figures | _size(users)


def _level(quantile: float) -> str:
    """Return the suffix of a metric's name for a level."""
    return f"_{quantile:g}"


def _reserved(y: Floats, limit: Floats, weight: Floats) -> Metric:
    return lambda w: metrics.reserved_over_used(y, limit, weight, w) if (w * weight * y).any() else _NAN


def _drawn(kinds: dict[str, Metric], users: NDArray[np.int32], intervals: bool) -> Figures:
    if not intervals:
        ones = np.ones(len(users))
        return {name: MetricInterval(metric(ones)) for name, metric in kinds.items()}
    return {name: bootstrap_by_user(users, metric) for name, metric in kinds.items()}


def _size(users: NDArray[np.int32]) -> Figures:
    return {"jobs": MetricInterval(float(len(users))), "users": MetricInterval(float(len(np.unique(users))))}
