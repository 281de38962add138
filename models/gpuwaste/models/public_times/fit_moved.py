"""Fits what operations that move data reach of the bandwidth, and convolutions of the products in them."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from gpuwaste.estimate.public.coefficients import ConvolutionShares, ProductShape
from gpuwaste.estimate.public.convolution_time import Convolutions, convolution_seconds
from gpuwaste.estimate.public.device_rates import DeviceRates
from gpuwaste.models.public_times.measured_operators import Timed
from gpuwaste.slurm.gpu_types import device

Floats = NDArray[np.float64]
LARGE_B: Final = 200e6  # above every cache, and long beside the launch
CONVOLUTIONS: Final = 1200  # of each GPU


def shares_of_bandwidth(measured: Sequence[Timed[Floats]]) -> dict[str, float]:
    """Return the median share of the bandwidth that large elementwise operations reach, by GPU."""
    found: dict[str, list[Floats]] = {}
    for each in measured:
        large = each.of > LARGE_B
        if each.kind == "elem" and large.any():
            reached = each.of[large] / each.seconds[large] / device(each.gpu).bandwidth_b_s
            found.setdefault(each.gpu, []).append(reached)
    return {gpu: float(np.median(np.concatenate(parts))) for gpu, parts in found.items()}


def shares_of_kinds(measured: Sequence[Timed[Floats]], reached: Mapping[str, float]) -> dict[str, float]:
    """Return what a kind reaches of the speed of elementwise operations on the same GPU, its median."""
    found: dict[str, list[Floats]] = {}
    for each in measured:
        large = each.of > LARGE_B
        if large.any():
            speed = each.of[large] / each.seconds[large] / device(each.gpu).bandwidth_b_s / reached[each.gpu]
            found.setdefault(each.kind, []).append(speed)
    return {kind: float(np.median(np.concatenate(parts))) for kind, parts in found.items()}


def fit_convolutions(
    measured: Sequence[Timed[Convolutions]], shapes: Mapping[str, ProductShape], rates: Mapping[str, DeviceRates]
) -> ConvolutionShares:
    """Fit the shares of f32 convolutions; `shapes` and `rates` by GPU. A constant of each GPU is fitted in addition."""
    samples = [_sampled(each) for each in measured]

    def errors(numbers: Floats) -> Floats:
        shares = _shares(numbers)
        found = []
        for place, (each, (of, seconds)) in enumerate(zip(measured, samples, strict=True)):
            predicted = convolution_seconds(of, shapes[each.gpu], rates[each.gpu], shares, winograd=True)
            found.append(np.log((predicted + np.exp(numbers[3 + place]) * 1e-6) / seconds))
        return np.concatenate(found)

    start = np.r_[0.0, 0.3, 0.2, np.full(len(measured), np.log(100.0))]
    least, most = [-1.0, -1.0, 0.0, *[0.0] * len(measured)], [0.69, 0.69, 1.5, *[6.5] * len(measured)]
    return _shares(least_squares(errors, start, bounds=(least, most), loss="soft_l1", f_scale=0.15).x)


def _shares(numbers: Floats) -> ConvolutionShares:
    return ConvolutionShares(
        direct=float(np.exp(numbers[0])), winograd=float(np.exp(numbers[1])), transforms=float(numbers[2])
    )


def _sampled(of: Timed[Convolutions]) -> tuple[Convolutions, Floats]:
    whole = len(of.seconds)
    places = np.random.default_rng(0).choice(whole, min(CONVOLUTIONS, whole), replace=False)
    one = of.of
    parts = (one.images, one.height, one.width, one.channels, one.columns, one.points, one.strided, one.element_b)
    return Convolutions(*(part[places] for part in parts)), of.seconds[places]
