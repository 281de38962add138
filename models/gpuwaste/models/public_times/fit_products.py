"""Fits how a generation of GPUs divides matrix products, and the power that limits them."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from gpuwaste.estimate.public.coefficients import ProductShape
from gpuwaste.estimate.public.device_rates import DeviceRates
from gpuwaste.estimate.public.product_time import Products, product_seconds
from gpuwaste.models.public_times.measured_operators import Timed
from gpuwaste.slurm.gpu_rates import peak_of
from gpuwaste.slurm.gpu_types import device

Floats = NDArray[np.float64]
TILES: Final = (
    (256, 128, 0), (128, 256, 0), (128, 128, 0), (128, 64, 1), (64, 128, 1), (64, 64, 2),
    (32, 128, 3), (128, 32, 3), (32, 64, 4), (64, 32, 4), (32, 32, 5),
)  # fmt: skip
"""Rows, columns, and which of the fitted shares a tile has."""
REACHED: Final = 0.9  # quantile of the rates of large products that is what power allows
ROWS: Final = 1200  # of each file and GPU
POWER_FLOPS: Final = 60e9  # peak FLOP/s for a watt, above which power limits these generations
PRIOR: Final = 30.0  # weight of the numbers of all GPUs beside a group's own
MARGIN: Final = 1e-6  # from the bounds, where a fit cannot start
_START: Final = (-0.05, -0.05, -0.2, -0.4, -0.5, -0.8, 16, 0.5, 500, 0.1, 0.1, 0.8, 2, 6)
_LEAST: Final = (-0.4, -0.4, -0.6, -1.0, -1.2, -1.5, 0, 0.05, 64, 0.0, 0.0, 0.3, 1.1, 3)
_MOST: Final = (0.0, 0.0, 0.1, 0.1, 0.0, 0.0, 100, 1.0, 4096, 0.5, 1.5, 1.0, 12, 20)
_SHARES: Final = 6


def sampled(of: Timed[Products], rows: int, seed: int = 0) -> tuple[Products, Floats]:
    """Return up to `rows` of the products, drawn with a seed."""
    whole = len(of.seconds)
    places = np.random.default_rng(seed).choice(whole, min(rows, whole), replace=False)
    one = of.of
    parts = (one.batch, one.rows, one.inner, one.columns, one.element_b)
    return Products(*(part[places] for part in parts)), of.seconds[places]


def watts_of(measured: Sequence[Timed[Products]]) -> float:
    """Return FLOP/s for a watt of board power that large products reach where power is the limit.

    The median of the GPUs whose peak needs more than a watt for each POWER_FLOPS: below, something else is the limit.
    """
    found = []
    for gpu in sorted({each.gpu for each in measured}):
        one = device(gpu)
        rates = [
            each.of.flops / each.seconds for each in measured if each.gpu == gpu and each.kind == "mm" and each.test
        ]
        if rates and peak_of(one, "f32") / one.board_w > POWER_FLOPS:
            found.append(float(np.quantile(np.concatenate(rates), REACHED)) / one.board_w)
    return float(np.median(found))


def fit_products(
    measured: Sequence[Timed[Products]], rates: Mapping[str, DeviceRates], like: Floats | None = None
) -> Floats:
    """Return the numbers of the shape of a group of GPUs: robust least squares of the logarithm of time.

    A constant of each file is fitted in addition. `like` are the numbers of all GPUs, which hold where the group's own
    say nothing: a GPU that is limited by power does not show how good its tiles are.
    """
    samples = [sampled(each, ROWS) for each in measured]
    many = len(_START)

    def errors(numbers: Floats) -> Floats:
        shape = shape_of(numbers[:many])
        found = []
        for place, (each, (of, seconds)) in enumerate(zip(measured, samples, strict=True)):
            constant = np.exp(numbers[many + place]) * 1e-6
            found.append(np.log((product_seconds(of, shape, rates[each.gpu]) + constant) / seconds))
        if like is not None:
            found.append(PRIOR * (numbers[:many] - like) / (np.array(_MOST) - np.array(_LEAST)))
        return np.concatenate(found)

    start = np.r_[_START if like is None else like, np.full(len(measured), np.log(30.0))]
    least, most = np.r_[_LEAST, np.zeros(len(measured))], np.r_[_MOST, np.full(len(measured), np.log(120.0))]
    fitted = least_squares(
        errors, start, bounds=(least, most), loss="soft_l1", f_scale=0.1, x_scale=most - least, max_nfev=120
    )
    numbers: Floats = np.clip(fitted.x[:many], np.array(_LEAST) + MARGIN, np.array(_MOST) - MARGIN)
    return numbers


def shape_of(numbers: Floats) -> ProductShape:
    """Return the shape that the fitted numbers describe."""
    shares = np.exp(numbers[:_SHARES])
    head, rounding, least_inner, misaligned, long_row, reading, overlap, power_overlap = map(float, numbers[_SHARES:])
    return ProductShape(
        tiles=[(rows, columns, float(shares[place])) for rows, columns, place in TILES],
        head=head,
        rounding=rounding,
        least_inner=least_inner,
        misaligned=misaligned,
        long_row=long_row,
        reading=reading,
        overlap=overlap,
        power_overlap=power_overlap,
    )
