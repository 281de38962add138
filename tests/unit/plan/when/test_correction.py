"""Waits corrected by past errors; run times from those that have ended."""

import numpy as np
import pytest

from gpuwaste.plan.when.correction import WaitShifts
from gpuwaste.plan.when.past_runs import ENOUGH, PastRuns
from gpuwaste.plan.when.queue import LEVELS, NO_LIMIT_S


@pytest.mark.parametrize(("factor", "width"), [(8.0, 0.1), (0.2, 0.5), (1.0, 3.0)])
def test_coverage(factor: float, width: float) -> None:
    """With errors drawn from one distribution, however wrong the simulated interval, 80 % of the waits are in it."""
    rng = np.random.default_rng(4)
    shifts, inside = WaitShifts(), []
    for k in range(4000):
        middle = float(np.exp(rng.uniform(6, 11)))
        said = [middle * np.exp(-width), middle, middle * np.exp(width)]
        waited = middle * factor * float(np.exp(rng.normal(0, 1)))
        low, _, high = shifts.apply(said)
        if k >= 1000:
            inside.append(low <= waited <= high)
        shifts.observe(said, waited)
    assert 0.77 <= np.mean(inside) <= 0.83


def test_nothing_learnt() -> None:
    """Without past waits what was simulated stays, and nothing becomes negative or falls."""
    shifts = WaitShifts()
    assert shifts.apply([10.0, 500.0, 9000.0]) == pytest.approx([10, 500, 9000])
    assert shifts.apply([-5.0, 100.0, 50.0]) == pytest.approx([0, 100, 100])


def test_past_runs() -> None:
    """A user's jobs of one shape come first, then the user's, then everybody's; the limit stays possible."""
    past = PastRuns()
    assert past.quantiles("a", 1, 100).tolist() == pytest.approx([100 * level for level in LEVELS])
    for _ in range(ENOUGH):
        past.observe("a", 1, 50, 100)
        past.observe("b", 1, 20, 100)
    for _ in range(ENOUGH):
        past.observe("a", 2, 10, 100)
    assert past.quantiles("a", 1, 200)[:-1].tolist() == [100.0] * 7
    assert past.quantiles("a", 2, 200)[:-1].tolist() == [20.0] * 7
    assert past.quantiles("b", 9, 200)[:-1].tolist() == pytest.approx([40.0] * 7)
    assert past.quantiles("c", 1, 200)[3] == pytest.approx(40.0)
    assert past.quantiles("c", 1, 200)[-1] == 200


@pytest.mark.parametrize(
    ("run", "limit"), [(-1, 100), (10, 0), (10, NO_LIMIT_S), (float("nan"), 100), (10, float("nan"))]
)
def test_teaches_nothing(run: float, limit: float) -> None:
    """A run without a time or a limit teaches nothing."""
    past = PastRuns()
    past.observe("a", 1, run, limit)
    assert past.quantiles("a", 1, 100).tolist() == pytest.approx([100 * level for level in LEVELS])
