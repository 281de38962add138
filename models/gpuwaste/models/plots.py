"""The card's plots as SVG files, in the style of the web pages' charts. Equal figures give equal bytes."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from gpuwaste.advice.predict.targets import Target
from gpuwaste.advice.renewal.card_types import CardFigures
from gpuwaste.models.holdout_figures import Curves
from gpuwaste.show.chart import Axis, Bars, Bins, Layer, Lines, Role, Series
from gpuwaste.show.charts.draw import chart_file, pair_file

_POINT_ROLES: Final[tuple[Role, ...]] = ("second", "third", "completed", "failed")
_PER_DECADE: Final = 8  # bins of a logarithmic axis
_HUGE: Final = 1e18  # an exabyte: no logarithmic axis shows it


def plots(target: Target, figures: CardFigures, curves: Curves) -> dict[str, bytes]:
    """Return the plots of one target by file name; none where there are no curves."""
    drawn: dict[str, str] = {}
    if "precision_recall" in curves:
        drawn["precision_recall"] = chart_file(_precision_recall(target, figures, curves))
        drawn["calibration"] = pair_file(("Calibration", "Jobs"), _calibration(target, curves))
    if "coverage" in curves:
        drawn["coverage"] = chart_file(_coverage(target, curves))
        drawn["limits"] = chart_file(_limits(target, curves))
    return {f"{target.name}.{name}.svg": text.encode() for name, text in drawn.items()}


def _precision_recall(target: Target, figures: CardFigures, curves: Curves) -> Lines:
    """Return the curve as steps, with the base rate and a dot at each operating point."""
    recall, precision = curves["precision_recall"]
    found = {
        f"{name} (p ≥ {point.threshold:.2f})": (point.recall.value, point.precision.value)
        for name, point in (figures.operating_points or {}).items()
    }
    dots = {name: (x, y) for name, (x, y) in found.items() if x is not None and y is not None}
    pairs = sorted(zip(recall, precision, strict=True), key=_place)
    steps = [pairs[0], *(one for (_, y), pair in pairwise(pairs) for one in ((pair[0], y), pair))]
    at = sorted([*steps, *((x, _step(pairs, x)) for x, _ in dots.values())], key=_place)
    base = figures.base_rate or 0.0
    series = [
        Series(name="precision", role="main", y=[y for _, y in at]),
        Series(name="base rate", role="muted", y=[base for _ in at]),
    ]
    for role, (name, (x, y)) in zip(_POINT_ROLES, dots.items(), strict=False):
        first = next(place for place, (other, _) in enumerate(at) if other == x)
        series.append(Series(name=name, role=role, y=[y if place == first else None for place in range(len(at))]))
    y_axis = Axis(title="precision", reach=[0.0, 1.0])
    title = f"Precision and recall of {target.name}"
    return Lines(title=title, x=Axis(title="recall"), y=y_axis, at=[x for x, _ in at], series=series)


def _step(pairs: Sequence[tuple[float, float]], x: float) -> float:
    """Return the value of a step curve at x, that of the last point at or before x."""
    return pairs[max(0, bisect_right(pairs, x, key=_place) - 1)][1]


def _place(point: tuple[float, float]) -> float:
    return point[0]


def _calibration(target: Target, curves: Curves) -> tuple[Lines, Bars]:
    said, came, jobs = curves["calibration"]
    x = Axis(title="predicted probability")
    lines = _diagonal(f"Calibration of {target.name}", x, "share that came true", said, came)
    names = [f"{value:.2f}" for value in said]
    bars = Bars(
        title="Jobs at each probability",
        x=Axis(title=x.title, scale="category", categories=names),
        y=Axis(title="jobs", unit="jobs"),
        at=[float(place) for place in range(len(said))],
        series=[Series(name="jobs", role="main", y=list(jobs))],
    )
    return lines, bars


def _coverage(target: Target, curves: Curves) -> Lines:
    nominal, achieved = curves["coverage"]
    return _diagonal(
        f"Coverage of {target.name}", Axis(title="quantile"), "share of jobs at or below it", nominal, achieved
    )


def _diagonal(title: str, x: Axis, y: str, at: Sequence[float], values: Sequence[float]) -> Lines:
    """Return a curve of shares, with the line on which both are equal."""
    ideal = Series(name="ideal", role="muted", y=list(at))
    series = [Series(name="this model", role="main", y=list(values)), ideal]
    return Lines(title=title, x=x, y=Axis(title=y, reach=[0.0, 1.0]), at=list(at), series=series)


def _limits(target: Target, curves: Curves) -> Bins:
    """Return the predicted limits against the usage, both logarithmic; values that cannot be shown are left out."""
    pairs = [(x, y) for x, y in zip(*curves["cloud"], strict=True) if _shown(x) and _shown(y)]
    ends = [math.log10(value) for pair in pairs for value in pair]
    first, last = (math.floor(min(ends)), math.ceil(max(ends) + 1e-9)) if ends else (0, 1)
    edges = [10 ** (first + place / _PER_DECADE) for place in range((last - first) * _PER_DECADE + 1)]
    bins = len(edges) - 1
    counts = [0] * (bins * bins)
    for x, y in pairs:
        column, row = (min(bins - 1, int((math.log10(value) - first) * _PER_DECADE)) for value in (x, y))
        counts[row * bins + column] += 1
    return Bins(
        title=f"Limits of {target.name}",
        x=Axis(title="used", unit=target.unit, scale="log"),
        y=Axis(title="predicted, q = 0.95", unit=target.unit, scale="log"),
        x_edges=edges,
        y_edges=edges,
        layers=[Layer(name="jobs", role="main", counts=counts)],
        diagonal=True,
    )


def _shown(value: float) -> bool:
    return math.isfinite(value) and 0 < value < _HUGE
