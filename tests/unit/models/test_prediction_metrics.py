"""The figures against cases worked by hand."""

import numpy as np
import pytest

from gpuwaste.advice.predict.model_comparison import Curve
from gpuwaste.models import prediction_metrics as metrics


def test_figures_of_a_case_worked_by_hand() -> None:
    """Five rows, two positives: each figure equals the value counted on paper."""
    y = np.array([1.0, 0.0, 1.0, 0.0, 0.0])
    p = np.array([0.9, 0.8, 0.7, 0.2, 0.1])
    assert metrics.average_precision(y, p) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert Curve(y, p).recall_at(0.95, np.ones(5)) == pytest.approx(0.5)
    assert metrics.f1(y, p >= 0.7) == pytest.approx(2 * 2 / (3 + 2))
    assert metrics.best_f1_threshold(y, p) == pytest.approx(0.7)


def test_calibration_error() -> None:
    """Saying 0.5 where half is true costs nothing; saying 0.95 there costs 0.45."""
    y = np.array([0.0, 1.0] * 50)
    assert metrics.ece(y, np.full(100, 0.5)) == pytest.approx(0.0)
    assert metrics.ece(y, np.full(100, 0.95)) == pytest.approx(0.45)


def test_walltime_figures() -> None:
    """One of four limits is too short; 400 s are reserved where 300 were used, by processors 350 for 250."""
    run, limit = np.array([50.0, 50.0, 100.0, 100.0]), np.array([100.0, 100.0, 150.0, 50.0])
    assert metrics.under_rate(run, limit) == pytest.approx(0.25)
    assert metrics.reserved_over_used(run, limit, np.ones(4)) == pytest.approx(400 / 300)
    assert metrics.reserved_over_used(run, limit, np.array([1.0, 0.0, 1.0, 2.0])) == pytest.approx(350 / 350)


def test_users_are_drawn_whole() -> None:
    """With one user who is right and one who is wrong the interval spans both; with two equal users it has no width."""
    users = np.repeat(np.array([0, 1], dtype=np.int32), 100)
    wrong = np.repeat([0.0, 1.0], 100)
    spread = metrics.bootstrap_by_user(users, lambda w: float(np.average(wrong, weights=w)))
    assert (spread.value, spread.low, spread.high) == (0.5, 0.0, 1.0)
    even = np.tile([0.0, 1.0], 100)
    tight = metrics.bootstrap_by_user(users, lambda w: float(np.average(even, weights=w)))
    assert tight.low == tight.high == 0.5


def test_the_worst_tenth_of_users() -> None:
    """Of ten users one is always wrong: the mean over users is 0.1, the worst decile 1."""
    users = np.repeat(np.arange(10, dtype=np.int32), 10)
    mean, worst = metrics.worst_decile(users, (users == 3).astype(float))
    assert mean == pytest.approx(0.1)
    assert worst == 1.0
