"""The loss by which predicted waits are judged."""

import numpy as np
import pytest

from gpuwaste.models.wait_trees import pinball


def test_pinball_by_hand() -> None:
    """100 s waited: p10 of 50 costs 5, p50 of 150 costs 25, p90 of 90 costs 9; no gap costs nothing."""
    assert pinball(np.array([100.0]), np.array([[50.0, 150.0, 90.0]])) == pytest.approx((5 + 25 + 9) / 3)
    assert pinball(np.array([100.0]), np.full((1, 3), 100.0)) == 0


def test_the_true_quantiles_are_best() -> None:
    """No other interval has a smaller loss on draws than the quantiles of what they were drawn from."""
    waits = np.random.default_rng(1).exponential(600, 20_000)
    true = -600 * np.log(1 - np.array([0.1, 0.5, 0.9]))
    best = pinball(waits, np.tile(true, (len(waits), 1)))
    for factor in (0.7, 1.4):
        assert pinball(waits, np.tile(true * factor, (len(waits), 1))) > best * 1.005
