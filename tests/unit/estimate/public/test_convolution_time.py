"""The time of a convolution: as one product, by Winograd's method where that is possible and shorter."""

from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpuwaste.estimate.public.coefficients import ConvolutionShares, shipped
from gpuwaste.estimate.public.convolution_time import Convolutions, convolution_seconds
from gpuwaste.estimate.public.device_rates import rates_of
from gpuwaste.estimate.public.product_time import Products, product_seconds
from gpuwaste.slurm.gpu_types import device

GPU: Final = device("v100-pcie-32gb")
SHAPE: Final = shipped().shape_of(GPU)
RATES: Final = rates_of(GPU, "f32", shipped())
SHARES: Final = shipped().convolution


def convolution(*, side: int = 56, channels: int = 256, points: int = 9, strided: int = 0) -> Convolutions:
    """Return one of 32 images with as many channels in the result."""
    sizes = (32, side, side, channels, channels, points, strided, 4)
    return Convolutions(*(np.array([float(each)]) for each in sizes))


def seconds(of: Convolutions, shares: ConvolutionShares = SHARES, *, winograd: bool = True) -> float:
    """Return the seconds of one convolution."""
    return float(convolution_seconds(of, SHAPE, RATES, shares, winograd=winograd)[0])


def test_winograd_computes_three_by_three_faster() -> None:
    """A layer of 3 x 3 in f32 takes less than as one product, down to a quarter of it (36 products for 144)."""
    direct, found = seconds(convolution(), winograd=False), seconds(convolution())
    assert direct / 4 < found < 0.8 * direct


@pytest.mark.parametrize("other", [{"points": 25}, {"points": 1}, {"points": 49}, {"strided": 1}])
def test_no_winograd_for_other_kernels_and_with_a_stride(other: dict[str, int]) -> None:
    """Other kernels than 3 x 3, and a stride: one product, whatever the precision allows."""
    of = convolution(**other)
    assert seconds(of) == seconds(of, winograd=False)


def test_the_shorter_of_the_two_methods_is_taken() -> None:
    """Where transforms cost more than they spare, 3 x 3 is one product too."""
    slow = ConvolutionShares(direct=SHARES.direct, winograd=0.01, transforms=1.0)
    assert seconds(convolution(), slow) == seconds(convolution(), winograd=False)
    assert seconds(convolution(), replace(SHARES, transforms=1.5)) > seconds(convolution())


def test_a_direct_one_is_its_product() -> None:
    """Places by channels x points by columns, over the share that convolutions reach."""
    of = convolution(side=28, points=25)
    ones = np.ones(1)
    whole = Products(ones, 32 * 28 * 28 * ones, 256 * 25 * ones, 256 * ones, 4 * ones)
    assert seconds(of) == pytest.approx(float(product_seconds(whole, SHAPE, RATES)[0]) / SHARES.direct)
    assert of.flops == pytest.approx(whole.flops)


_SIZE: Final = st.integers(1, 2048)


@given(
    sizes=st.tuples(_SIZE, _SIZE, _SIZE, _SIZE, _SIZE), points=st.sampled_from([1, 9, 25]), strided=st.integers(0, 1)
)
def test_no_time_is_negative_or_infinite(sizes: tuple[int, ...], points: int, strided: int) -> None:
    """Any sizes have a positive finite time, at least a quarter of the FLOPs at the peak."""
    of = Convolutions(*(np.array([float(each)]) for each in (*sizes, points, strided, 4)))
    found = seconds(of)
    assert np.isfinite(found)
    assert found > float(of.flops[0]) / RATES.peak / 4 * (1 - 1e-9)
