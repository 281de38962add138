"""A target's figures on the test part: the corrected prediction at each submission against the outcome.

The result is a part of card.json: plain numbers, None where there is no value.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace
from numpy.typing import NDArray

from gpuwaste.advice.predict.drift import coverage
from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.rolling import busy_users, roll
from gpuwaste.advice.predict.targets import Target, labels, request_cap
from gpuwaste.advice.renewal.card_types import CardByUser, CardFigures, CardInterval, CardLevel, CardPoint, CardRequest
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.models import prediction_metrics as metrics
from gpuwaste.models.evaluate.figures import MIN_TEST, Figures, of_probability, of_quantiles
from gpuwaste.models.evaluate.method import MethodAnswer
from gpuwaste.models.target_fit import Fitted, Vectors, calibrated
from gpuwaste.models.training_rows import HistorySplit

Array = NDArray[np.float64]
Curves = Mapping[str, Sequence[Sequence[float]]]
NAMES: Final = tuple(feature.name for feature in FEATURES)
_CURVE: Final = 120  # points of a curve
_CLOUD: Final = 1500  # jobs in a plot


@dataclass(frozen=True, slots=True)
class HoldoutFigures:
    """`figures` go into the card, `curves` into its plots."""

    figures: CardFigures
    curves: Curves


def judge(fitted: Fitted, table: JobTable, vectors: Vectors, split: HistorySplit) -> HoldoutFigures:
    """Judge a fitted target on `split.test`, which it has not seen at all; validation rows start the correction."""
    target = fitted.target
    first = int(split.validation[0]) if len(split.validation) else int(split.test[0])
    scored = np.arange(len(table)) >= first
    raw = np.full((len(table), len(fitted.boosters)), np.nan, np.float32)
    raw[first:] = fitted.raw(vectors[first:])
    busy = busy_users(vectors, NAMES)
    said = roll(table, fitted.model, raw, scored=scored, busy=busy).values
    y = labels(target.name, table)
    rows = split.test[np.isfinite(y[split.test])]
    users = table.user.codes[rows]
    if len(rows) < MIN_TEST:
        note = f"{len(rows)} labelled jobs in the test part are too few to judge by"
        return HoldoutFigures(CardFigures(jobs=len(rows), users=len(np.unique(users)), note=note), {})
    if target.kind == "probability":
        own = calibrated(raw[rows, 0], fitted.model.calibration)
        return _probability(y[rows], said[rows], own, users, fitted.model.thresholds)
    return _quantiles(target, table, rows, said[rows])


def _probability(
    y: Array, p: Array, own: Array, users: NDArray[np.int32], points: Mapping[str, float]
) -> HoldoutFigures:
    found = of_probability(y, MethodAnswer(p, points.get("f1", 0.5)), users)
    figures = CardFigures(
        jobs=len(y),
        users=len(np.unique(users)),
        base_rate=float(y.mean()),
        ece=interval(found["ece"]),
        ece_uncorrected=finite(metrics.ece(y, own)),
        operating_points={name: _point(y, p, at, users) for name, at in sorted(points.items())},
        brier_by_user=_by_user(found["brier_by_user"], found["brier_worst_decile"]),
    )
    if not 0 < y.mean() < 1:
        note = f"all {len(y)} labelled jobs of the test part are alike: nothing to tell apart"
        figures = replace(figures, note=note)
    else:
        figures = replace(
            figures,
            average_precision=interval(found["average_precision"]),
            recall_at_precision=interval(found["recall_at_precision_0.95"]),
            f1=interval(found["f1"]) if "f1" in points else UNSET,
        )
    return HoldoutFigures(figures, {"precision_recall": _pr_curve(y, p), "calibration": _calibration(y, p)})


def _point(y: Array, p: Array, at: float, users: NDArray[np.int32]) -> CardPoint:
    """Return threshold, the number of jobs above it, and precision and recall on the test part."""
    said = p >= at

    def precision(weight: Array) -> float:
        total = float(weight[said].sum())
        return float(weight[said] @ y[said]) / total if total else float("nan")

    def recall(weight: Array) -> float:
        total = float(weight @ y)
        return float(weight[said] @ y[said]) / total if total else float("nan")

    return CardPoint(
        threshold=at,
        jobs=int(said.sum()),
        share=float(said.mean()),
        precision=interval(metrics.bootstrap_by_user(users, precision)),
        recall=interval(metrics.bootstrap_by_user(users, recall)),
    )


def _quantiles(target: Target, table: JobTable, rows: NDArray[np.intp], said: Array) -> HoldoutFigures:
    users, asked = table.user.codes[rows], request_cap(target.name, table)[rows]
    used = labels(target.name, table)[rows]
    weight = np.where(np.isfinite(table.cpus[rows]), table.cpus[rows], 1.0)
    size = weight if target.name == "walltime" else np.ones(len(rows))
    found = of_quantiles(used, MethodAnswer(said, levels=target.quantiles), size, users)
    known, at = np.isfinite(asked), target.quantiles.index(0.95)
    figures = CardFigures(
        jobs=len(rows),
        users=len(np.unique(users)),
        quantiles={str(q): _level(found, f"_{q:g}") for q in target.quantiles},
        request=CardRequest(
            jobs=int(known.sum()),
            reserved_over_used=finite(metrics.reserved_over_used(used[known], asked[known], size[known])),
        )
        if known.any()
        else UNSET,
        under_rate_by_user=_by_user(found["under_rate_by_user_0.95"], found["under_rate_worst_decile_0.95"]),
    )
    picked = np.unique(np.linspace(0, len(rows) - 1, _CLOUD).astype(int))
    curves = {
        "coverage": [list(target.quantiles), coverage(said, used)],
        "cloud": [used[picked].tolist(), said[picked, at].tolist()],
    }
    return HoldoutFigures(figures, curves)


def _level(found: Figures, level: str) -> CardLevel:
    return CardLevel(
        under_rate=interval(found[f"under_rate{level}"]),
        reserved_over_used=interval(found[f"reserved_over_used{level}"]),
        reserved_over_used_unweighted=finite(found[f"reserved_over_used_unweighted{level}"].value),
    )


def _by_user(mean: metrics.MetricInterval, worst: metrics.MetricInterval) -> CardByUser:
    return CardByUser(finite(mean.value), finite(worst.value))


def _pr_curve(y: Array, p: Array) -> list[list[float]]:
    """Return recall and precision at thresholds spread over the jobs."""
    order = np.argsort(-p, kind="stable")
    hits = np.cumsum(y[order])
    last = np.flatnonzero(np.append(np.diff(p[order]) != 0, values=True))  # jobs of equal p are taken together
    picked = last[np.unique(np.linspace(0, len(last) - 1, _CURVE).astype(int))]
    total = max(float(y.sum()), 1.0)
    return [(hits[picked] / total).tolist(), (hits[picked] / (picked + 1)).tolist()]


def _calibration(y: Array, p: Array) -> list[list[float]]:
    """Return mean p, share of positives and jobs of each bin that has jobs."""
    number = np.minimum((p * metrics.ECE_BINS).astype(int), metrics.ECE_BINS - 1)
    jobs = np.bincount(number, minlength=metrics.ECE_BINS)
    some = jobs > 0
    means = [np.bincount(number, values, minlength=metrics.ECE_BINS)[some] / jobs[some] for values in (p, y)]
    return [means[0].tolist(), means[1].tolist(), jobs[some].tolist()]


def interval(found: metrics.MetricInterval) -> CardInterval:
    """Return an interval as JSON data."""
    return CardInterval(finite(found.value), finite(found.low), finite(found.high))


def finite(value: float) -> float | None:
    """Return a number, None for NaN and infinities."""
    return float(value) if np.isfinite(value) else None
