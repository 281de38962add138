"""Plots of a card."""

import re
from xml.etree import ElementTree as ET

import numpy as np

from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.advice.renewal.card_types import CardFigures, CardInterval, CardPoint
from gpuwaste.models.holdout_figures import Curves
from gpuwaste.models.plots import plots


def point(threshold: float, recall: float, precision: float | None) -> CardPoint:
    found = (CardInterval(value, None, None) for value in (precision, recall))
    return CardPoint(threshold=threshold, jobs=1, share=0.1, precision=next(found), recall=next(found))


POINTS = {"warn": point(0.4, 0.8, 0.5), "reject": point(0.9, 0.0, None)}
NONE = CardFigures(jobs=9, users=1)
FIGURES = CardFigures(jobs=9, users=1, base_rate=0.2, operating_points=POINTS)
CURVES: Curves = {
    "precision_recall": [[0.0, 0.5, 1.0], [1.0, 0.7, 0.2]],
    "calibration": [[0.1, 0.9], [0.2, 0.8], [30, 5]],
}


def test_equal_figures_give_equal_bytes() -> None:
    """Two drawings are the same file: no date, no random ids; each is SVG with its axes named."""
    first, second = (plots(BY_NAME["failure"], FIGURES, CURVES) for _ in range(2))
    assert first == second
    assert sorted(first) == ["failure.calibration.svg", "failure.precision_recall.svg"]
    for data in first.values():
        assert ET.fromstring(data).tag.endswith("svg")  # noqa: S314 our own
        assert b"<dc:date>" not in data
    assert b"warn (p" in first["failure.precision_recall.svg"]
    assert b"reject (p" not in first["failure.precision_recall.svg"]


def test_precision_is_a_step_curve_also_where_it_rises() -> None:
    """Between two points it has the value of the left one; a dot does not bend it."""
    curves = {**CURVES, "precision_recall": [[0.0, 0.5, 1.0], [0.5, 0.25, 1.0]]}
    text = plots(BY_NAME["failure"], FIGURES, curves)["failure.precision_recall.svg"].decode()
    path = next(re.finditer(r'd="M([^"]*)" class="line role-main"', text))[1]
    points = [tuple(map(float, point.split(","))) for point in re.split("[L ]", path)]
    xs, ys = zip(*points, strict=True)
    assert list(xs) == sorted(xs)
    assert [ys.index(y) for y in ys] == [0, 0, 2, 2, 2, 5]
    assert ys[5] < ys[0] < ys[2]  # pixels: the largest precision is the uppermost


def test_odd_values_are_left_out_of_a_cloud() -> None:
    """Zero, infinite and absurd values have no place on logarithmic axes; with none left the axes stay empty."""
    curves = {"coverage": [[0.5, 0.95], [0.4, 0.96]], "cloud": [[0.0, 10.0, 5.0], [1.0, 20.0, 1e300]]}
    drawn = plots(BY_NAME["walltime"], NONE, curves)
    assert sorted(drawn) == ["walltime.coverage.svg", "walltime.limits.svg"]
    assert b">jobs, 1<" in drawn["walltime.limits.svg"]
    curves["cloud"] = [[0.0], [np.inf]]
    assert b"No data" in plots(BY_NAME["walltime"], NONE, curves)["walltime.limits.svg"]
    assert plots(BY_NAME["walltime"], NONE, {}) == {}
