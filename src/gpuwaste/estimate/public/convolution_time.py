"""The time of a convolution on one GPU: as one matrix product, or by Winograd's method where that is shorter.

Winograd's F(4x4, 3x3) computes 4 x 4 places of the result from 6 x 6 of the input with 36 products in place of 144
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016), and moves what it transforms.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpuwaste.estimate.public.coefficients import ConvolutionShares, ProductShape
from gpuwaste.estimate.public.device_rates import DeviceRates
from gpuwaste.estimate.public.product_time import Floats, Products, product_seconds

_OUT: Final = 4  # places of a tile of the result, along each side
_IN: Final = 36  # places of a tile of the input
WINOGRAD_POINTS: Final = 9  # of a kernel of 3 x 3


@dataclass(frozen=True, slots=True)
class Convolutions:
    """Convolutions [n]: `images` of `height` x `width` places of the result; `points` of the kernel."""

    images: Floats
    height: Floats
    width: Floats
    channels: Floats
    columns: Floats
    """Channels of the result."""
    points: Floats
    strided: Floats
    """Above 0 where the result has other places than the input: no Winograd."""
    element_b: Floats

    @property
    def flops(self) -> Floats:
        """FLOPs of each as a matrix product."""
        return 2 * self.images * self.height * self.width * self.columns * self.channels * self.points


def convolution_seconds(
    of: Convolutions, shape: ProductShape, on: DeviceRates, shares: ConvolutionShares, *, winograd: bool
) -> Floats:
    """Return seconds of each convolution [n], without its launch; `winograd`: the precision allows it (f32)."""
    ones = np.ones_like(of.images)
    places = of.images * of.height * of.width
    whole = Products(ones, places, of.channels * of.points, of.columns, of.element_b)
    direct = product_seconds(whole, shape, on) / shares.direct
    if not winograd:
        return direct
    tiles = of.images * np.ceil(of.height / _OUT) * np.ceil(of.width / _OUT)
    products = product_seconds(Products(_IN * ones, tiles, of.channels, of.columns, of.element_b), shape, on)
    transformed = _transformed_b(of, places, tiles) / on.moved
    by_tiles = products / shares.winograd + transformed * shares.transforms
    possible = (of.points == WINOGRAD_POINTS) & (of.strided == 0)
    found: Floats = np.where(possible, np.minimum(direct, by_tiles), direct)
    return found


def _transformed_b(of: Convolutions, places: Floats, tiles: Floats) -> Floats:
    """Return bytes of input, result and kernels with their transforms, each written and read once."""
    data = (of.channels + of.columns) * (places + 2 * _IN * tiles)
    kernels = of.channels * of.columns * (WINOGRAD_POINTS + 2 * _IN)
    return (data + kernels) * of.element_b
