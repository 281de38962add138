"""Fitting one target: labels, censoring, calibration."""

from dataclasses import replace

import numpy as np
import pytest

from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.models.target_fit import Recipe, calibrated, conformal, fit, learnable, platt
from gpuwaste.testing.planted import planted_table

QUICK = Recipe({"max_depth": 3, "learning_rate": 0.3}, 5)


def test_walltimes_are_censored_at_the_limit() -> None:
    """A run over its limit counts with the limit, whatever its state; one without a limit counts in full."""
    table = planted_table(4)
    table = replace(
        table,
        run_s=np.array([700.0, 700.0, 100.0, 0.0]),
        limit_s=np.array([600.0, np.nan, 600.0, 600.0]),
        outcome=np.array([Outcome.TIMEOUT, Outcome.COMPLETED, Outcome.COMPLETED, Outcome.COMPLETED], np.uint8),
    )
    expected = np.log([600.0, 700.0, 100.0, np.nan])
    assert learnable(BY_NAME["walltime"], table) == pytest.approx(expected, nan_ok=True)
    over = replace(table, outcome=np.full(4, Outcome.COMPLETED, np.uint8))
    assert learnable(BY_NAME["walltime"], over) == pytest.approx(expected, nan_ok=True)


def test_only_the_newest_rows_are_learnt_from() -> None:
    """A recipe's max_rows takes the last labelled rows."""
    table = planted_table(300)
    vectors = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    rows = np.arange(200)
    some = fit(BY_NAME["walltime"], table, vectors, rows, rows[:0], recipe=replace(QUICK, max_rows=120), threads=1)
    last = fit(BY_NAME["walltime"], table, vectors, rows[80:], rows[:0], recipe=QUICK, threads=1)
    assert some.model.rows == last.model.rows == 120
    assert np.array_equal(some.raw(vectors), last.raw(vectors))
    assert some.model.shifts == (0.0, 0.0, 0.0, 0.0)


def test_too_few_of_a_class_is_no_data() -> None:
    """The reason has both counts."""
    table = planted_table(100)
    table = replace(table, outcome=np.full(100, Outcome.COMPLETED, np.uint8))
    vectors = np.zeros((100, 2), np.float32)
    with pytest.raises(NoDataError, match="0 of 100 labelled jobs: at least 20"):
        fit(BY_NAME["failure"], table, vectors, np.arange(100), np.arange(0), recipe=QUICK, threads=1)


def test_platt_undoes_a_known_distortion() -> None:
    """Labels drawn from sigmoid(2 logit + 1) give slope 2 and offset 1; one class alone gives the identity."""
    rng = np.random.default_rng(1)
    raw = rng.uniform(0.05, 0.95, 20_000).astype(np.float32)
    p = 1 / (1 + np.exp(-(2 * np.log(raw / (1 - raw)) + 1)))
    y = (rng.random(20_000) < p).astype(np.float32)
    scale = platt(raw, y)
    assert (scale.slope, scale.offset) == pytest.approx((2, 1), abs=0.1)
    assert calibrated(raw, scale) == pytest.approx(p, abs=0.03)
    assert platt(raw, np.ones(20_000, np.float32)).slope == 1.0


def test_the_conformal_quantile_is_the_next_higher_one() -> None:
    """With n values the ceil((n + 1) q)-th smallest, the largest where there are too few, 0 for none."""
    values = np.arange(1.0, 20.0)
    assert conformal(values, 0.5) == 10.0
    assert conformal(values, 0.9) == 18.0
    assert conformal(values, 0.99) == 19.0
    assert conformal(values[:0], 0.5) == 0.0
