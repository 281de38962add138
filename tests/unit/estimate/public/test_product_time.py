"""The time of a matrix product: bounds that no GPU is faster than, tiles in waves, division of the inner dimension."""

from dataclasses import replace
from math import inf
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from gpuwaste.estimate.public.coefficients import ProductShape, shipped
from gpuwaste.estimate.public.device_rates import DeviceRates, rates_of
from gpuwaste.estimate.public.product_time import LONG_ROW, Products, joined, product_seconds
from gpuwaste.slurm.gpu_types import device

ONE_TILE: Final = ProductShape(
    tiles=[(128, 128, 1.0)], head=0.0, rounding=1.0, least_inner=1e9, misaligned=0.0, long_row=0.0, reading=1.0,
    overlap=50.0, power_overlap=50.0,
)  # fmt: skip
"""One shape of tiles, nothing divided, all of the last wave idle: times that are computed by hand."""
PLAIN: Final = DeviceRates(peak=1e13, sustained=inf, bandwidth=1e15, moved=1e15, processors=10)
GPUS: Final = ("p4", "t4", "v100-pcie-32gb", "a100-40gb", "h100", "mi210")
_SIZE: Final = st.integers(1, 20_000)


def product(rows: float, inner: float, columns: float, batch: float = 1) -> Products:
    """Return one f32 product."""
    return Products(*(np.array([float(each)]) for each in (batch, rows, inner, columns, 4)))


def seconds(of: Products, shape: ProductShape = ONE_TILE, on: DeviceRates = PLAIN) -> float:
    """Return the seconds of one product."""
    return float(product_seconds(of, shape, on)[0])


@given(gpu=st.sampled_from(GPUS), batch=st.integers(1, 500), rows=_SIZE, inner=_SIZE, columns=_SIZE)
def test_no_product_is_faster_than_the_roofline(gpu: str, batch: int, rows: int, inner: int, columns: int) -> None:
    """FLOPs at the peak and at what power allows, bytes at the bandwidth: none takes longer than the product."""
    one, of = device(gpu), product(rows, inner, columns, batch)
    rates = rates_of(one, "f32", shipped())
    found = seconds(of, shipped().shape_of(one), rates)
    bounds = of.flops / rates.peak, of.flops / rates.sustained, of.bytes / rates.bandwidth
    assert found >= max(float(each[0]) for each in bounds) * (1 - 1e-9)


@given(gpu=st.sampled_from(GPUS), batch=st.integers(1, 500), rows=_SIZE, inner=_SIZE, columns=_SIZE)
def test_twice_the_batch(gpu: str, batch: int, rows: int, inner: int, columns: int) -> None:
    """A product of twice the batch takes about as long at least, and three and a half times as long at most.

    Parts of a tile cost their heads, which one wave without parts does not; two waves follow where parts filled one.
    """
    shape, rates = shipped().shape_of(device(gpu)), rates_of(device(gpu), "f32", shipped())
    once, twice = (seconds(product(rows, inner, columns, times * batch), shape, rates) for times in (1, 2))
    assert 0.8 * once <= twice <= 3.5 * once


def test_tiles_in_waves() -> None:
    """Ten tiles on ten processors are one wave, eleven are two; with half of the rounding the second counts half."""
    one = 2 * 128 * 128 * 1024 / (1e13 / 10)
    assert seconds(product(10 * 128, 1024, 128)) == pytest.approx(one)
    assert seconds(product(1, 1024, 1)) == pytest.approx(one)
    assert seconds(product(11 * 128, 1024, 128)) == pytest.approx(2 * one)
    assert seconds(product(11 * 128, 1024, 128), changed(ONE_TILE, rounding=0.5)) == pytest.approx(1.55 * one)


def test_rows_beyond_the_result_are_computed_in_vain() -> None:
    """129 rows take two tiles: twice the time of 128 where all processors have work."""
    full, padded = seconds(product(128, 1024, 128, batch=1000)), seconds(product(129, 1024, 128, batch=1000))
    assert padded == pytest.approx(2 * full)
    smaller = changed(ONE_TILE, tiles=[(128, 128, 1.0), (32, 128, 0.9)])
    assert seconds(product(129, 1024, 128, batch=1000), smaller) == pytest.approx(full * 5 / 4 / 0.9)


def test_few_tiles_are_divided_along_a_long_inner_dimension() -> None:
    """One tile on ten processors, 10,240 deep: in ten parts it takes a tenth; a short one stays whole."""
    divided = changed(ONE_TILE, least_inner=512.0)
    assert seconds(product(128, 10_240, 128)) == pytest.approx(10 * seconds(product(128, 10_240, 128), divided))
    assert seconds(product(128, 2048, 128)) == pytest.approx(4 * seconds(product(128, 2048, 128), divided))
    assert seconds(product(128, 512, 128)) == pytest.approx(seconds(product(128, 512, 128), divided))
    head = changed(divided, head=16.0)
    assert seconds(product(128, 10_240, 128), head) > 1.01 * seconds(product(128, 10_240, 128), divided)


def test_power_bounds_large_products() -> None:
    """Where power allows half of the peak, a large product takes twice as long; one of a few rows as long as before."""
    limited = replace(PLAIN, sustained=5e12)
    large, small = product(12_800, 1024, 12_800), product(1, 1024, 1)
    assert seconds(large, on=limited) == pytest.approx(2 * seconds(large), rel=0.01)
    assert seconds(small, on=limited) == pytest.approx(seconds(small), rel=0.01)


def test_misaligned_and_long_rows_take_longer() -> None:
    """A tenth more where no row begins at a multiple of four elements; half more for each doubling of 8192."""
    shape = changed(ONE_TILE, misaligned=0.1, long_row=0.5)
    sizes = product(1280, 1024, 128), product(1280, 1021, 127)
    assert seconds(sizes[0], shape) == pytest.approx(seconds(sizes[0]))
    assert seconds(sizes[1], shape) == pytest.approx(1.1 * seconds(sizes[1]))
    for doublings, inner in ((0, LONG_ROW), (1, 2 * LONG_ROW), (3, 8 * LONG_ROW), (3, 64 * LONG_ROW)):
        of = product(1280, inner, 128)
        assert seconds(of, shape) == pytest.approx((1 + 0.5 * doublings) * seconds(of))


def test_a_product_with_a_vector_is_bound_by_the_bandwidth() -> None:
    """Reading the matrix at 80 % of the bandwidth is the time."""
    of = product(1, 8192, 8192)
    found = seconds(of, changed(ONE_TILE, reading=0.8), replace(PLAIN, peak=1e15, bandwidth=1e11))
    assert found == pytest.approx(float(of.bytes[0]) / 0.8e11, rel=0.02)


@given(one=st.floats(1e-9, 1e3), other=st.floats(1e-9, 1e3), exponent=st.floats(1, 50))
def test_joined_times_lie_between_the_longer_and_the_sum(one: float, other: float, exponent: float) -> None:
    """The sum with exponent 1, about the longer with a large one, between the two with all others."""
    first, second = np.array([one]), np.array([other])
    found = float(joined(first, second, exponent)[0])
    assert max(one, other) * (1 - 1e-9) <= found <= (one + other) * (1 + 1e-9)
    assert float(joined(first, second, 1.0)[0]) == pytest.approx(one + other)
    assert float(joined(first, second, 200.0)[0]) == pytest.approx(max(one, other), rel=0.01)
