"""The Gaussian process: what it interpolates, what it does not know, and leaving groups out in closed form."""

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuwaste.estimate.gaussian_process import BLOCKS, KERNEL_SIZE, Kernel, ResidualGp, distances, same_family

WIDTH = sum(width for _, width in BLOCKS)
NUMBERS = np.array([-4.0, -5.0, -4.5, -4.0, 0.5, 1.0, *[-1.0] * (KERNEL_SIZE - 7), -8.0])
KERNEL = Kernel(NUMBERS)
FAMILIES = ["a", "a", "a", "b", "b", "b", "c", "c", "", ""]


def process(rows: slice | list[int] = slice(None)) -> tuple[ResidualGp, NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(3)
    features, residuals = rng.normal(0, 0.4, (10, WIDTH)), rng.normal(0, 0.1, 10)
    places = np.arange(10)[rows]
    return ResidualGp(KERNEL, features[places], [FAMILIES[i] for i in places], residuals[places]), features, residuals


def test_a_measured_program_is_interpolated() -> None:
    """At a measured program of a family the mean is about its residual, and the width about the noise."""
    gp, features, residuals = process()
    mean, sd = gp.predict(features[:3], FAMILIES[:3])
    assert mean == pytest.approx(residuals[:3], abs=0.02)
    assert (sd < 3 * np.sqrt(KERNEL.noise)).all()


def test_a_program_far_from_all_others_is_not_known() -> None:
    """Far away the mean is the median residual and the width that of a program of which nothing is known."""
    gp, features, residuals = process()
    mean, sd = gp.predict(features[:1] + 1e3, [""])
    assert mean[0] == pytest.approx(np.median(residuals))
    assert sd[0] == pytest.approx(np.sqrt(KERNEL.variance + KERNEL.noise))


def test_leaving_groups_out_is_as_fitting_without_them() -> None:
    """The closed form gives what a process gives that never saw the group."""
    gp, features, _ = process()
    groups = ["a", "a", "a", None, "b", "b", 6, 7, 8, 9]
    mean, sd = gp.left_out(groups)
    assert np.isnan([mean[3], sd[3]]).all()
    for group in ("a", "b", 6, 8):
        out = [row for row, each in enumerate(groups) if each == group]
        without, *_ = process([row for row in range(10) if row not in out])
        without.mean = gp.mean  # that of all rows, as in the closed form
        without._weights = without.inverse @ (without.residuals - gp.mean)
        expected, width = without.predict(features[out], [FAMILIES[row] for row in out])
        assert mean[out] == pytest.approx(expected, abs=1e-9)
        assert sd[out] == pytest.approx(width, rel=1e-6)


def test_no_family_is_shared_with_nobody() -> None:
    """Programs without a family share no family, not even with each other."""
    assert same_family(["a", "", "b"], ["a", "", "a"]).tolist() == [
        [True, False, True],
        [False, False, False],
        [False, False, False],
    ]


def test_a_program_is_as_far_from_itself_as_nothing() -> None:
    """Distances by block are 0 for equal programs and symmetric."""
    features = np.random.default_rng(1).normal(size=(4, WIDTH))
    apart = distances(features, features)
    assert apart.shape == (len(BLOCKS), 4, 4)
    assert np.diagonal(apart, axis1=1, axis2=2) == pytest.approx(0.0, abs=1e-9)
    assert apart == pytest.approx(apart.transpose(0, 2, 1))
