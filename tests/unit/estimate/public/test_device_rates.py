"""What a GPU reaches by its data sheet: arithmetic that its power limits, and bandwidth."""

from math import inf

import pytest
from msgspec.structs import replace

from gpuwaste.estimate.public.coefficients import shipped
from gpuwaste.estimate.public.device_rates import f32_rates, fmean_log, rates_of
from gpuwaste.slurm.gpu_rates import memory_class, memory_family, published_flops
from gpuwaste.slurm.gpu_types import device, devices


def test_power_limits_a_t4_and_no_v100() -> None:
    """70 W sustain about half of the T4's peak; the V100's 250 W sustain all of it."""
    t4, v100 = (rates_of(device(gpu), "f32", shipped()) for gpu in ("t4", "v100-pcie-32gb"))
    assert 0.4 * t4.peak < t4.sustained < 0.7 * t4.peak
    assert v100.sustained == inf
    assert (v100.peak, v100.bandwidth, v100.processors) == (14e12, 900e9, 80)


def test_the_limit_is_the_mean_of_power_and_what_users_have_published() -> None:
    """FLOP/s for a watt times the T4's 70 W, with 4.17 TFLOP/s published: the geometric mean; each by itself else."""
    t4 = device("t4")
    assert f32_rates(t4, 60e9).sustained == pytest.approx((60e9 * 70 * 4.17e12) ** 0.5)
    assert f32_rates(t4, inf).sustained == pytest.approx(4.17e12)
    assert f32_rates(replace(t4, reaches={}), 1e12).sustained == inf
    assert fmean_log([1.0, 4.0, 16.0]) == pytest.approx(4.0)


def test_the_family_counts_where_power_is_a_limit_or_unknown() -> None:
    """An A30 without figures of its own: what its family has published, only if power limits it or is unknown."""
    a30 = device("a30")
    published = published_flops(a30, "f32")
    assert published < 10.3e12
    assert f32_rates(a30, inf).sustained == pytest.approx(published)
    assert f32_rates(a30, 1e12).sustained == inf
    assert f32_rates(a30, 50e9).sustained == pytest.approx((50e9 * 165 * published) ** 0.5)


def test_matrix_units_of_cdna() -> None:
    """f32 products of the MI210 run in matrix units at 45.3 TFLOP/s, twice its vector units."""
    assert rates_of(device("mi210"), "f32", shipped()).peak == 45.3e12


def test_other_types_have_the_published_rate_and_no_limit() -> None:
    """16-bit products of the A100 80 GB: 258.7 TFLOP/s published, of 312."""
    found = rates_of(device("a100-80gb"), "f16", shipped())
    assert (found.peak, found.sustained) == (258.7e12, inf)


def test_the_share_of_the_bandwidth_by_family_or_kind_of_memory() -> None:
    """A measured family has its share; others have that of their kind of memory."""
    known = shipped()
    for gpu, key in (
        ("v100-16gb", "volta hbm"),
        ("h100", "hbm"),
        ("l4", "gddr"),
        ("a40", "gddr"),
        ("a30", "ampere hbm"),
    ):
        rates = rates_of(device(gpu), "f32", known)
        assert rates.moved == pytest.approx(rates.bandwidth * known.bandwidth[key]), gpu
    assert (memory_family(device("t4")), memory_class(device("h200"))) == ("turing gddr", "hbm")


def test_every_type_of_the_table_has_rates() -> None:
    """Positive everywhere, sustained below the peak or no limit, moved bytes below the bandwidth."""
    for one in devices():
        rates = rates_of(one, "f32", shipped())
        assert rates.sustained > 0
        assert rates.sustained < rates.peak or rates.sustained == inf, one.name
        assert 0 < rates.moved < rates.bandwidth, one.name
