"""Operating points from validation."""

import numpy as np

from gpuwaste.models.target_fit import operating_points


def test_points_stand_where_validation_supports_them() -> None:
    """Reject needs precision on enough jobs; warn lies at or below F1's point, because it minds recall."""
    rng = np.random.default_rng(3)
    p = rng.random(5000)
    y = (rng.random(5000) < p**2).astype(np.float64)
    points = operating_points(y, p)
    assert points["warn"] <= points["f1"] < points["reject"]
    named = p >= points["reject"]
    assert y[named].mean() >= 0.95
    assert named.sum() >= 20


def test_no_point_without_support() -> None:
    """A precise threshold above a handful of jobs is hearsay; one class has no points at all."""
    y = np.array([1.0] * 5 + [0.0, 1.0] * 100)
    p = np.array([0.99] * 5 + [0.3] * 200)
    assert set(operating_points(y, p)) == {"f1", "warn"}
    assert operating_points(np.ones(50), np.full(50, 0.5)) == {}
    assert operating_points(np.empty(0), np.empty(0)) == {}
