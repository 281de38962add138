"""Figures: equal to the definitions, whatever the weights."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_curve

from gpuwaste.advice.predict.model_comparison import Curve
from gpuwaste.models import prediction_metrics as metrics
from gpuwaste.models.evaluate.figures import of_probability, of_quantiles
from gpuwaste.models.evaluate.method import MethodAnswer

ROW = st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), st.integers(0, 3))


@given(st.lists(ROW, min_size=1, max_size=40))
def test_the_curve_is_that_of_scikit_learn(rows: list[tuple[bool, float, int]]) -> None:
    """Area and recall at a precision are those of its functions, with ties and weights."""
    y, p, weight = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    curve = Curve(y, p)
    kept = weight > 0
    if not kept.any() or not 0 < y[kept].mean() < 1:
        assert math.isnan(curve.average_precision(weight))
        return
    y, p, kept_weight = y[kept], p[kept], weight[kept]
    assert curve.average_precision(weight) == pytest.approx(metrics.average_precision(y, p, kept_weight))
    found, recall, _ = precision_recall_curve(y, p, sample_weight=kept_weight)
    for precision in (0.5, 0.95):
        assert curve.recall_at(precision, weight) == pytest.approx(recall[found >= precision].max(initial=0.0))


def test_limits_by_hand() -> None:
    """Two of four runs are longer than their limit; reserved over used is 17 of 18 by processors, 14 of 16 by job."""
    y = np.array([2.0, 4.0, 4.0, 6.0])
    limit = np.array([[3.0], [4.0], [2.0], [5.0]])
    users = np.array([0, 0, 1, 1], dtype=np.int32)
    found = of_quantiles(y, MethodAnswer(limit, levels=(0.95,)), np.array([2.0, 1.0, 1.0, 1.0]), users)
    assert found["under_rate_0.95"].value == 0.5
    assert found["coverage_0.95"].value == 0.5
    assert found["reserved_over_used_0.95"].value == pytest.approx(17 / 18)
    assert found["reserved_over_used_unweighted_0.95"].value == pytest.approx(14 / 16)
    assert found["under_rate_by_user_0.95"].value == 0.5
    assert found["under_rate_worst_decile_0.95"].value == 1.0
    assert (found["under_rate_0.95"].low, found["under_rate_0.95"].high) == (0.0, 1.0)


def test_a_job_without_a_limit_is_never_short_and_reserves_nothing() -> None:
    """Rows without a limit count as covered, and the share of the others is told."""
    y, users = np.array([10.0, 10.0]), np.array([0, 1], dtype=np.int32)
    found = of_quantiles(y, MethodAnswer(np.array([[np.inf], [20.0]])), np.ones(2), users, intervals=False)
    assert found["under_rate"].value == 0.0
    assert found["reserved_over_used"].value == 2.0
    assert found["limited"].value == 0.5


def test_probabilities_by_hand() -> None:
    """One hit, one false alarm, one miss, one rest: F1 and accuracy one half; the reject point names the surest."""
    y, p = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.9, 0.8, 0.3, 0.1])
    users = np.array([0, 1, 2, 3], dtype=np.int32)
    found = of_probability(y, MethodAnswer(p, threshold=0.5, reject=0.85), users)
    assert found["f1"].value == 0.5
    assert found["accuracy"].value == 0.5
    assert found["average_precision"].value == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert found["recall_at_precision_0.95"].value == 0.5
    assert found["brier"].value == pytest.approx((0.01 + 0.64 + 0.49 + 0.01) / 4)
    assert found["brier_worst_decile"].value == pytest.approx(0.64)
    assert (found["reject_share"].value, found["reject_precision"].value) == (0.25, 1.0)
    assert found["average_precision"].low <= found["average_precision"].value <= found["average_precision"].high
