"""The numbers of the Gaussian process' kernel: what makes the measured residuals most probable."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from gpuwaste.estimate.gp import KERNEL_SIZE, Kernel, same_family
from gpuwaste.estimate.time_features import distances

Floats = NDArray[np.float64]
PRIOR: Final = np.array([-4.0, -5.0, -5.0, -4.0, 0.5, 1.5, *[0.0] * (KERNEL_SIZE - 7), -7.5])
"""Logarithms of: wide, narrow, family's offset, family's own (variances), their inverse lengths, weights, noise."""
_SPREAD: Final = 3.0  # standard deviation of each number around the prior: weak
_BOUND: Final = 15.0
_ROOT3: Final = float(np.sqrt(3.0))


def fit_kernel(
    features: Floats,
    families: Sequence[str],
    residuals: Floats,
    *,
    seed: int = 1,
    most_rows: int = 300,
    iterations: int = 40,
) -> Kernel:
    """Return the kernel of highest posterior density for at most so many drawn rows: it takes some fifty inversions."""
    rows = np.arange(len(residuals))
    if len(rows) > most_rows:
        rows = np.random.default_rng(seed).permutation(len(rows))[:most_rows]
    drawn = [families[int(row)] for row in rows]
    apart = distances(features[rows], features[rows])
    same = same_family(drawn, drawn)
    same |= np.eye(len(rows), dtype=np.bool_)
    found = residuals[rows] - np.median(residuals)

    def loss(numbers: Floats) -> tuple[float, Floats]:
        gradients = _gradients(numbers, apart, same)
        covariance = Kernel(numbers).covariance(apart, same)
        covariance[np.diag_indices_from(covariance)] += np.exp(numbers[-1])
        try:
            factor = cho_factor(covariance, lower=True)
        except np.linalg.LinAlgError:
            return 1e9, np.zeros(len(numbers))
        weights = cho_solve(factor, found)
        inner = cho_solve(factor, np.eye(len(found))) - np.outer(weights, weights)
        off = (numbers - PRIOR) / _SPREAD
        value = 0.5 * float(found @ weights) + float(np.log(np.diag(factor[0])).sum()) + 0.5 * float(off @ off)
        return value, 0.5 * np.array([float((inner * each).sum()) for each in gradients]) + off / _SPREAD

    bounds = [(value - _BOUND, value + _BOUND) for value in PRIOR]
    best = minimize(loss, PRIOR, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations})
    return Kernel(np.asarray(best.x, dtype=np.float64))


def _gradients(numbers: Floats, apart: Floats, same: NDArray[np.bool_]) -> list[Floats]:
    """Return the derivative of the covariance by each number, in the order of Kernel.numbers."""
    wide, narrow, offset, local, family_scale, narrow_scale = np.exp(numbers[:6])
    weights = np.exp(numbers[6:-1])
    squared = np.tensordot(weights, apart, axes=1)
    r = np.sqrt(squared)
    shapes = [np.exp(-_ROOT3 * r * scale) for scale in (1.0, narrow_scale, family_scale)]
    wide_k, narrow_k, family_k = (
        (1.0 + _ROOT3 * r * scale) * shape
        for scale, shape in zip((1.0, narrow_scale, family_scale), shapes, strict=True)
    )
    # The derivative of a Matern kernel by r^2 times the factor -3/2 of its exponential, so that r = 0 is no exception.
    by_squared = -1.5 * (
        wide * shapes[0]
        + narrow * narrow_scale**2 * shapes[1]
        + np.where(same, local * family_scale**2 * shapes[2], 0.0)
    )
    return [
        wide * wide_k,
        narrow * narrow_k,
        np.where(same, offset, 0.0),
        np.where(same, local * family_k, 0.0),
        np.where(same, -3.0 * local * family_scale**2 * squared * shapes[2], 0.0),
        -3.0 * narrow * narrow_scale**2 * squared * shapes[1],
        *(weight * each * by_squared for weight, each in zip(weights, apart, strict=True)),
        np.exp(numbers[-1]) * np.eye(len(r)),
    ]
