"""FLOP/s of large products: what users have published, the family's share and watts, or the peak."""

import pytest

from gpuwaste.slurm.gpu_rates import peak_of, published_flops
from gpuwaste.slurm.gpu_types import device, devices

BOOSTED = {"rtx2080ti", "rtx3090", "rtx4090"}
"""Boards whose clock rises above that of the sheet, by up to a tenth."""


def test_a_published_rate_is_taken() -> None:
    """T4: 4.17 of 8.1 TFLOP/s in f32, 41.91 of 65 in f16."""
    assert published_flops(device("t4"), "f32") == pytest.approx(4.17e12)
    assert published_flops(device("t4"), "f16") == pytest.approx(41.91e12)


def test_a_type_without_figures_takes_its_family_s_share() -> None:
    """V100 PCIe: of its family, 14.22 of 15.7 TFLOP/s and as much for a watt; the less of the two."""
    found = published_flops(device("v100-pcie-16gb"), "f32")
    assert found == pytest.approx(min(14e12 * 14.22 / 15.7, 14.22e12 / 300 * 250))


def test_watts_of_the_family_limit_a_small_board() -> None:
    """A10: 150 W at the family's median of FLOP/s for a watt are less than the family's share of its peak."""
    family = [each for each in devices() if each.family == "ampere" and "f32" in each.reaches]
    watts = sorted(each.reaches["f32"] * 1e12 / each.board_w for each in family)
    assert min(watts) * 150 <= published_flops(device("a10"), "f32") <= max(watts) * 150
    assert published_flops(device("a10"), "f32") < 0.45 * peak_of(device("a10"), "f32")


def test_a_type_of_which_nobody_published_has_its_peak() -> None:
    """Nobody has published f8 of Hopper or f64 of Volta here: the data sheet's rate."""
    for gpu, dtype, peak in (("h100", "f8", 1979e12), ("v100-16gb", "f64", 7.8e12)):
        assert published_flops(device(gpu), dtype) == peak


def test_f32_of_cdna_is_that_of_matrix_units() -> None:
    """MI100: 46.1 TFLOP/s in matrix units, 23.1 in vector units, and the share that the MI210 reaches of its own."""
    mi100 = device("mi100")
    assert peak_of(mi100, "f32") == 46.1e12
    assert peak_of(device("a100-40gb"), "f32") == 19.5e12
    assert published_flops(mi100, "f32") == pytest.approx(min(35.46 / 45.3 * 46.1e12, 35.46e12 / 300 * 300))


def test_no_rate_is_above_the_peak() -> None:
    """Of the whole table; boards whose clock rises above the sheet's are at most a tenth above."""
    for each in devices():
        for dtype in ("f32", "tf32", "f16", "bf16", "f8", "i8", "f64"):
            most = 1.1 if each.name in BOOSTED else 1.0
            assert 0.25 * peak_of(each, dtype) < published_flops(each, dtype) <= most * peak_of(each, dtype), (
                each.name,
                dtype,
            )
