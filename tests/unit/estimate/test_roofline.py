"""The additive roofline: sums become seconds, and another GPU's seconds by its data sheet."""

import numpy as np
import pytest

from gpuwaste.estimate.program import OpSum
from gpuwaste.estimate.roofline import LAUNCH_S, Roofline, between, keys_of, sheet_seconds, work_of
from gpuwaste.slurm.gpu_types import device

PROGRAMS = [
    {"mm/bf16": OpSum(2, 1e9, 1e6), "elem/f32": OpSum(3, 0, 4e6)},
    {"mm/bf16": OpSum(1, 5e8, 2e6), "sort/i32": OpSum(1, 0, 8)},
]


def test_seconds_are_the_sum_by_hand() -> None:
    """Executions, FLOPs and bytes are each taken times their coefficient, and the constant is added once."""
    roofline = Roofline(("elem/f32", "mm/bf16"), np.array([[1e-6, 0, 1e-12], [2e-6, 1e-14, 2e-12]]), 1e-5)
    work = work_of(PROGRAMS, roofline.keys)
    assert roofline.parts(work)[0].tolist() == pytest.approx([3e-6 + 4e-6, 4e-6 + 1e-5 + 2e-6])
    assert roofline.seconds(work).tolist() == pytest.approx([1e-5 + 7e-6 + 1.6e-5, 1e-5 + 2e-6 + 5e-6 + 4e-6])


def test_keys_of_few_programs_are_left_out() -> None:
    """A kind that one program has gets no coefficient where two are asked for."""
    assert keys_of(PROGRAMS) == ("elem/f32", "mm/bf16", "sort/i32")
    assert keys_of(PROGRAMS, least=2) == ("mm/bf16",)


def test_another_gpu_is_scaled_by_its_data_sheet() -> None:
    """FLOPs scale with the peak of their element type, bytes with the bandwidth, launches not at all."""
    source, target = device("rtx3090"), device("rtx4090")
    roofline = Roofline(("mm/bf16",), np.array([[1e-6, 1e-14, 1e-12]]), 1e-5)
    scaled = roofline.scaled(*between(source, target))
    assert scaled.coefficients[0].tolist() == pytest.approx([1e-6, 1e-14 * 71 / 165.2, 1e-12 * 936 / 1008])
    assert scaled.constant_s == 1e-5


def test_the_data_sheet_bounds_unmeasured_work() -> None:
    """The larger of computing and moving counts, and a launch for each execution."""
    gpu = device("rtx4090")
    assert sheet_seconds("mm/bf16", OpSum(2, 165.2e12, 0), gpu) == pytest.approx(1 + 2 * LAUNCH_S)
    assert sheet_seconds("elem/f32", OpSum(1, 0, 1008e9), gpu) == pytest.approx(1 + LAUNCH_S)
