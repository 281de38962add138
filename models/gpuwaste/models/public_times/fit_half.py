"""Fits the shares that 16-bit programs reach, to steps of whole models whose operations are known as sums."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from gpuwaste.estimate.program import OpSum
from gpuwaste.estimate.public.coefficients import Coefficients, HalfShares
from gpuwaste.estimate.public.device_rates import rates_of
from gpuwaste.models.public_times.measured_sums import TimedSums
from gpuwaste.slurm.gpu_types import device

Floats = NDArray[np.float64]
_PRODUCTS: Final = frozenset({"mm", "bmm", "conv1", "sdpa"})
_CONVOLUTIONS: Final = frozenset({"conv", "gconv"})


def fit_half(measured: Sequence[TimedSums], known: Coefficients) -> HalfShares:
    """Fit the steps of inference; the factor of training is the median of measured over computed time."""
    inference = [each for each in measured if not each.training]
    work = np.array([_work(each.sums, each.gpu, known) for each in inference]).T
    seconds = np.array([each.step_s for each in inference])

    def errors(numbers: Floats) -> Floats:
        found: Floats = np.log(_seconds(work, np.exp(numbers)) / seconds)
        return found

    limits = np.log([0.05, 0.02, 0.2]), np.log([1.2, 1.2, 1.5])
    found = np.exp(least_squares(errors, np.log([0.6, 0.4, 0.8]), bounds=limits, loss="soft_l1", f_scale=0.1).x)
    shares = HalfShares(products=float(found[0]), convolutions=float(found[1]), moved=float(found[2]), training=1.0)
    training = [each.step_s / half_seconds(each.sums, each.gpu, known, shares) for each in measured if each.training]
    factor = float(np.median(training)) if training else 3.0
    return HalfShares(products=shares.products, convolutions=shares.convolutions, moved=shares.moved, training=factor)


def half_seconds(sums: Mapping[str, OpSum], gpu: str, known: Coefficients, shares: HalfShares) -> float:
    """Return seconds of a forward pass from sums."""
    work = np.array([_work(sums, gpu, known)]).T
    return float(_seconds(work, np.array([shares.products, shares.convolutions, shares.moved]))[0])


def _work(sums: Mapping[str, OpSum], gpu: str, known: Coefficients) -> tuple[float, float, float, float]:
    """Return seconds at the peak of products and of convolutions, of moved bytes, and of launches."""
    rates = rates_of(device(gpu), "f16", known)
    products = sum(each.flops for kind, each in sums.items() if kind in _PRODUCTS) / rates.peak
    convolved = sum(each.flops for kind, each in sums.items() if kind in _CONVOLUTIONS) / rates.peak
    moved = sum(
        each.bytes / known.moved.get(kind, known.moved["*"])
        for kind, each in sums.items()
        if kind not in _PRODUCTS | _CONVOLUTIONS
    )
    return products, convolved, moved / rates.moved, known.launch_s * sum(each.count for each in sums.values())


def _seconds(work: Floats, shares: Floats) -> Floats:
    """Return seconds of each program [n] from the rows of `_work` [4, n]."""
    found: Floats = (work[:3] / shares[:, None]).sum(axis=0) + work[3]
    return found
