"""Errors of fits and the widths of intervals, on known numbers."""

from math import exp
from typing import Final

import numpy as np
import pytest

from gpuwaste.estimate.public.coefficients import Widths
from gpuwaste.models.public_times.judge import (
    JudgedStep,
    conformal,
    covered,
    judged_with_factors,
    least,
    mean_error,
    step_factors,
)
from gpuwaste.models.public_times.measured_operators import Timed
from gpuwaste.models.public_times.measured_steps import TimedStep
from gpuwaste.models.public_times.publish import rounded, step_errors

WIDTHS: Final = Widths(measured=0.1, unmeasured=0.2, tf32=0.3, half=0.3, half_training=0.4, compiled=0.1)


def judged(gpu: str, model: str, log_error: float, *, training: bool = False, disturbed: bool = False) -> JudgedStep:
    """Return a step that took e^log_error seconds where one was computed."""
    case = f"{model}-{'train' if training else 'inf'}-512-4"
    forward = 0.9 if disturbed else 0.3
    return JudgedStep(TimedStep(gpu, case, 1, exp(log_error), forward, 0.6), 1.0)


def test_the_width_is_the_next_rank_above_nine_tenths() -> None:
    """Of 19 errors the 18th, of 10 and of 9 the largest, of 99 the 90th; signs do not count."""
    assert conformal([-0.01 * each for each in range(1, 20)]) == pytest.approx(0.18)
    assert conformal([0.01 * each for each in range(1, 11)]) == pytest.approx(0.10)
    assert conformal([0.01 * each for each in range(1, 10)]) == pytest.approx(0.09)
    assert conformal([0.01 * each for each in range(1, 100)]) == pytest.approx(0.90)


def test_coverage_is_by_the_errors_of_the_others() -> None:
    """Two GPUs: the errors of each are the width for the other; by model the groups are others."""
    found = [judged("t4", "bert", 0.1), judged("t4", "gpt", 0.1), judged("p4", "bert", -0.2), judged("p4", "gpt", 0.05)]
    assert covered(found, by="gpu") == 0.75
    assert covered(found, by="model") == 0.75
    assert covered([judged("t4", "bert", 0.1), judged("p4", "bert", 0.3)], by="gpu") == 0.5


def test_errors_are_relative_to_the_measured_time() -> None:
    """A step of 2 s where 1 s was computed: half too short."""
    one = judged("t4", "bert", 0.693147)
    assert one.error == pytest.approx(-0.5, rel=1e-4)
    assert one.log_error == pytest.approx(0.693147)
    assert mean_error([one, judged("t4", "bert", 0.0)]) == pytest.approx(0.25, rel=1e-4)


def test_the_factor_of_a_gpu_is_from_other_models() -> None:
    """The median of undisturbed steps; a step is judged without its own model, and left out where there is no other."""
    found = [
        judged("t4", "bert", 0.1), judged("t4", "gpt", 0.3), judged("p4", "gpt", 0.2),
        judged("t4", "opt", 0.9, training=True, disturbed=True),
    ]  # fmt: skip
    assert step_factors(found) == pytest.approx({"p4": exp(0.2), "t4": (exp(0.1) + exp(0.3)) / 2})
    assert step_factors(found, "gpt") == pytest.approx({"t4": exp(0.1)})
    with_factors = judged_with_factors(found)
    assert [each.step.gpu for each in with_factors] == ["t4", "t4", "t4"]
    assert [each.log_error for each in with_factors[:2]] == pytest.approx([-0.2, 0.2])


def test_the_least_latency_is_of_the_kind() -> None:
    """Of this GPU's training file, else the median of the others."""

    def timed(gpu: str, seconds: float, *, test: bool = False, kind: str = "mm") -> Timed[int]:
        return Timed(gpu, kind, 0, np.array([seconds, 9.0]), test)

    among = [timed("t4", 0.2), timed("p4", 0.4), timed("p100-pcie", 0.6), timed("t4", 0.1, kind="bmm")]
    assert least(among, timed("t4", 1.0, test=True)) == 0.2
    assert least(among, timed("a40", 1.0, test=True)) == pytest.approx(0.4)


def test_published_errors_are_by_vendor_and_mode() -> None:
    """Training also without what was disturbed; INSIDE is by the width of a GPU that was not measured."""
    found = [
        judged("t4", "bert", 0.1), judged("t4", "bert", 0.3), judged("mi210", "bert", 0.1),
        judged("t4", "gpt", 0.1, training=True), judged("t4", "gpt", 0.5, training=True, disturbed=True),
    ]  # fmt: skip
    errors = step_errors(found, WIDTHS)
    assert {case: each.steps for case, each in errors.items()} == {
        "FP32 inference, AMD": 1, "FP32 inference, NVIDIA": 2, "FP32 training, NVIDIA": 2,
        "FP32 training, NVIDIA, undisturbed": 1,
    }  # fmt: skip
    assert errors["FP32 inference, NVIDIA"].inside == 0.5
    assert errors["FP32 training, NVIDIA, undisturbed"].mean == pytest.approx(1 - exp(-0.1))


def test_numbers_are_written_with_four_digits() -> None:
    """In mappings and lists, other values as they are."""
    assert rounded({"a": [0.123456, 7, "x"], "b": (123456.0,)}) == {"a": [0.1235, 7, "x"], "b": [123500.0]}
