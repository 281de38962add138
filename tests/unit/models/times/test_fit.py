"""Step times fitted to planted programs: coefficients, errors on programs not seen, intervals, another GPU."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.estimate.planted_times import COSTS, FAMILIES, planted, true_s

from gpuwaste.core.errors import NoDataError
from gpuwaste.estimate.gaussian_process import BLOCKS, Kernel
from gpuwaste.estimate.time_model import TimeModel
from gpuwaste.models.time_errors import SEEN, judge
from gpuwaste.models.time_fit import PRIOR, Measurements, _gradients, fit_model, fit_roofline
from gpuwaste.models.time_transfer import transfer
from gpuwaste.slurm.gpu_types import device

pytestmark = pytest.mark.long


def test_a_world_without_families_is_found_exactly() -> None:
    """Where times are the roofline itself, its coefficients are found."""
    rows = planted(80, noise=0.0)
    exact = np.array([true_s(dict(s), f) / FAMILIES[f] for s, f in zip(rows.sums, rows.families, strict=True)])
    found = fit_roofline(Measurements(rows.sums, rows.families, exact, rows.own))
    work = np.array([COSTS[key] for key in found.keys])
    costly = work > 0
    assert found.coefficients[costly] == pytest.approx(work[costly], rel=0.2)
    assert (found.coefficients >= 0).all()


def test_seen_families_are_predicted_within_a_few_percent() -> None:
    """Programs of known families are off by little more than the noise, and 90 % intervals hold most of them."""
    model = fit_model("rtx3090", planted(120))
    asked = planted(60, seed=7)
    log_s, sd = model.predict(asked.sums, asked.families)
    off = np.abs(log_s - np.log(asked.seconds))
    assert off.mean() < 0.03
    assert 0.8 <= (off <= sd * model.grounds.known_z).mean() <= 1.0


def test_the_table_has_every_case_and_unseen_is_harder() -> None:
    """Families held out are predicted worse than seen ones, and better with a part of them measured."""
    figures = {one.case: one for one in judge("rtx3090", planted(120))[0]}
    assert list(figures) == [SEEN, "unseen, 0% measured", "unseen, 5% measured", "unseen, 20% measured"]
    assert figures[SEEN].mape < figures["unseen, 0% measured"].mape
    assert figures["unseen, 20% measured"].mape < figures["unseen, 0% measured"].mape


def test_own_runs_that_miss_widen_the_intervals() -> None:
    """Own runs with errors far larger than those of calibration make intervals wider, never narrower."""
    rows = planted(120)
    own = np.zeros(len(rows), dtype=np.bool_)
    own[::4] = True
    wild = np.where(own, np.exp(np.random.default_rng(1).normal(0, 0.5, len(rows))), 1.0)
    calm = fit_model("rtx3090", Measurements(rows.sums, rows.families, rows.seconds, own))
    missed = fit_model("rtx3090", Measurements(rows.sums, rows.families, rows.seconds * wild, own), like=calm)
    assert calm.grounds.widened >= 1.0
    assert missed.grounds.widened > calm.grounds.widened
    assert calm.grounds.runs == 30


def test_too_few_programs_make_no_model() -> None:
    """Nothing is fitted to a handful of programs."""
    with pytest.raises(NoDataError, match=r"rtx3090: 10 programs measured, at least 50 needed"):
        fit_model("rtx3090", planted(10))


def test_twenty_programs_correct_a_scaled_model() -> None:
    """A GPU twice as fast as its data sheet says is found with twenty programs, and the basis says how."""
    old = fit_model("rtx3090", planted(120))
    source, target = device("rtx3090"), device("rtx4090")
    asked = planted(60, seed=8)
    truth = asked.seconds / 4

    def off(found: TimeModel) -> float:
        log_s, _ = found.predict(asked.sums, asked.families)
        return float(np.abs(np.exp(log_s) / truth - 1).mean())

    runs = planted(20, seed=9)
    moved = transfer(old, source, target, Measurements(runs.sums, runs.families, runs.seconds / 4, runs.own))
    assert off(moved) < 0.1 < off(old.scaled(source, target))
    assert moved.grounds.basis == "scaled from rtx3090, corrected by 20 programs measured on rtx4090"


def test_derivatives_of_the_kernel_are_those_of_its_covariance() -> None:
    """Each derivative is what a small change of its number makes."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(len(BLOCKS), 6, 3))
    apart = 0.1 * ((points[:, :, None] - points[:, None]) ** 2).sum(axis=-1)
    same = np.eye(6, dtype=np.bool_) | (rng.random((6, 6)) < 0.3)

    def covariance(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = Kernel(numbers).covariance(apart, same) + np.exp(numbers[-1]) * np.eye(6)
        return found

    for place, found in enumerate(_gradients(PRIOR, apart, same)):
        step = np.zeros(len(PRIOR))
        step[place] = 1e-6
        assert found == pytest.approx((covariance(PRIOR + step) - covariance(PRIOR - step)) / 2e-6, abs=1e-8)
