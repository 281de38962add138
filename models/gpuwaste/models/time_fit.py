"""A time model of one GPU type, fitted to programs measured on it.

The parameters of the Gaussian process' kernel are those that make the measured residuals most probable.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize, nnls

from gpuwaste.core.errors import NoDataError
from gpuwaste.estimate.gaussian_process import (
    KERNEL_SIZE,
    Kernel,
    ResidualGp,
    distances,
    features_of,
    mix_overlap,
    same_family,
)
from gpuwaste.estimate.program import OpSum
from gpuwaste.estimate.roofline import Roofline, keys_of, work_of
from gpuwaste.estimate.time_model import FEW, FitSupport, TimeModel

Floats = NDArray[np.float64]
MIN_ROWS: Final = 50  # with fewer a model is rejected: scale from another type, or measure more
MIN_KEY_ROWS: Final = 5  # with a kind and element type, before it gets its own coefficients
LEVEL: Final = 0.9
MIN_OWN: Final = 20  # own runs before their misses widen the intervals
_FAR: Final = 0.02  # share of programs that, without their family, would be rejected as unlike all others
_FLOOR_Z: Final = 0.6  # of the normal distribution's width: a lucky sample does not make intervals narrow
_NORMAL_Z: Final = 1.645
_MIN_WIDTH_ROWS: Final = 30
_FAMILY_FOLDS: Final = 3
_NESTED_ROWS: Final = 150  # rows for the kernels of these folds: they only set one width
_LEAST_S: Final = 1e-12
PRIOR: Final = np.array([-4.0, -5.0, -5.0, -4.0, 0.5, 1.5, *[0.0] * (KERNEL_SIZE - 7), -7.5])
"""Logarithms of: wide, narrow, family's offset, family's own (variances), their inverse lengths, weights, noise."""
_SPREAD: Final = 3.0  # standard deviation of each number around the prior: weak
_BOUND: Final = 15.0
_ROOT3: Final = float(np.sqrt(3.0))


@dataclass(frozen=True, slots=True)
class Measurements:
    """One row per program: its sums, its family, the seconds of a step, and whether it is a site's own run."""

    sums: tuple[Mapping[str, OpSum], ...]
    families: tuple[str, ...]
    seconds: Floats
    own: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.sums)

    def take(self, rows: Sequence[int] | NDArray[Any]) -> "Measurements":
        """Return these rows."""
        places = [int(row) for row in rows]
        return Measurements(
            tuple(self.sums[row] for row in places),
            tuple(self.families[row] for row in places),
            self.seconds[places],
            self.own[places],
        )


def measurements(rows: Sequence[tuple[Mapping[str, OpSum], str, float, bool]]) -> Measurements:
    """Return rows of sums, family, seconds and whether it is an own run."""
    return Measurements(
        tuple(row[0] for row in rows),
        tuple(row[1] for row in rows),
        np.array([row[2] for row in rows], dtype=np.float64),
        np.array([row[3] for row in rows], dtype=np.bool_),
    )


def fit_roofline(rows: Measurements) -> Roofline:
    """Return the non-negative coefficients with the least squares of relative errors (Lawson and Hanson 1974)."""
    keys = keys_of(rows.sums, MIN_KEY_ROWS)
    work = work_of(rows.sums, keys).reshape(len(rows), -1)
    design = np.concatenate([work, np.ones((len(rows), 1))], axis=1)
    scale = design.max(axis=0)
    scale[scale == 0] = 1.0
    found, _ = nnls(design / scale / rows.seconds[:, None], np.ones(len(rows)), maxiter=100 * design.shape[1])
    coefficients = found / scale
    return Roofline(keys, coefficients[:-1].reshape(len(keys), -1), float(coefficients[-1]))


def fit_model(gpu: str, rows: Measurements, *, seed: int = 1, like: TimeModel | None = None) -> TimeModel:
    """Return the model of a type; `like` was fitted to fewer of the rows, and its kernel and few_z are reused.

    Raises NoDataError for too few rows.
    """
    if len(rows) < MIN_ROWS:
        raise NoDataError(f"{gpu}: {len(rows)} programs measured, at least {MIN_ROWS} needed: resume the calibration")
    gp, roofline = _process(rows, rows, seed, None if like is None else like.gp.kernel)
    grounds = FitSupport(
        gpu=gpu,
        programs=len(rows),
        families=len(set(rows.families)),
        shortest_s=float(rows.seconds.min()),
        longest_s=float(rows.seconds.max()),
        least_nearness=_least_nearness(gp),
        new_z=_half_width(_misses(gp, [family or (row, "") for row, family in enumerate(rows.families)])),
        few_z=_few_z(rows, seed) if like is None else like.grounds.few_z,
        known_z=_half_width(_misses(gp, list(range(len(rows))))),
        runs=int(rows.own.sum()),
    )
    model = TimeModel(grounds, roofline, roofline, gp)
    return replace(model, grounds=replace(grounds, widened=_widened(model, rows)))


def _process(
    fitted: Measurements, rows: Measurements, seed: int, kernel: Kernel | None = None, *, most_rows: int = 300
) -> tuple[ResidualGp, Roofline]:
    """Return the process conditioned on `rows`, with roofline and kernel of `fitted`."""
    roofline = fit_roofline(fitted)
    if kernel is None:
        features, residuals = _inputs(roofline, fitted)
        kernel = fit_kernel(features, fitted.families, residuals, seed=seed, most_rows=most_rows)
    features, residuals = _inputs(roofline, rows)
    return ResidualGp(kernel, features, rows.families, residuals), roofline


def _inputs(roofline: Roofline, rows: Measurements) -> tuple[Floats, Floats]:
    work = work_of(rows.sums, roofline.keys)
    seconds = np.maximum(roofline.seconds(work), _LEAST_S)
    return features_of(roofline, work), np.log(rows.seconds) - np.log(seconds)


def _few_z(rows: Measurements, seed: int) -> float:
    """Return the half width for families with few measurements.

    Roofline and kernel are fitted without those families: with them, they would be too certain about the few.
    """
    rng = np.random.default_rng(seed)
    families = np.array(rows.families, dtype=object)
    misses = [np.zeros(0)]
    for names in np.array_split(rng.permutation(sorted({name for name in rows.families if name})), _FAMILY_FOLDS):
        inside = np.isin(families, names)
        if inside.any() and (~inside).sum() >= MIN_ROWS // 2:
            gp, _ = _process(rows.take(np.flatnonzero(~inside)), rows, seed, most_rows=_NESTED_ROWS)
            misses.append(_misses(gp, _all_but_few(families, inside, rng)))
    return _half_width(np.concatenate(misses))


def _all_but_few(families: NDArray[Any], inside: NDArray[np.bool_], rng: np.random.Generator) -> list[Hashable]:
    """Return the group of each row inside, as if one to FEW rows of each family were measured; None for those."""
    groups: list[Hashable] = [name if here else None for name, here in zip(families, inside, strict=True)]
    for name in sorted(set(families[inside])):
        places = rng.permutation(np.flatnonzero(families == name))
        for place in places[: rng.integers(1, FEW + 1)]:
            groups[int(place)] = None
    return groups


def _misses(gp: ResidualGp, groups: Sequence[Hashable]) -> Floats:
    """Return the error, in standard deviations, of each row with a group, predicted without its group."""
    mean, sd = gp.left_out(groups)
    found: Floats = np.abs(gp.residuals - mean) / sd
    return found[[group is not None for group in groups]]


def _half_width(misses: Floats) -> float:
    """Return the number of standard deviations that covers 90 % of the rows; the normal distribution's for few rows."""
    if len(misses) < _MIN_WIDTH_ROWS:
        return _NORMAL_Z
    return max(_conformal(misses), _FLOOR_Z * _NORMAL_Z)


def _conformal(misses: Floats) -> float:
    """Return the quantile that covers one further draw (split conformal prediction: Vovk 2005)."""
    rank = int(np.ceil((len(misses) + 1) * LEVEL))
    return float(np.sort(misses)[min(rank, len(misses)) - 1])


def _widened(model: TimeModel, rows: Measurements) -> float:
    """Return the factor by which the site's own runs, each left out, widen the intervals: 1 if 90 % are inside."""
    if rows.own.sum() < MIN_OWN:
        return 1.0
    misses = _misses(model.gp, list(range(len(rows))))[rows.own]
    return max(1.0, _conformal(misses) / model.grounds.known_z)


def _least_nearness(gp: ResidualGp) -> float:
    """Return the nearness below which a program is unlike all measured: few families are so far from all others."""
    others = mix_overlap(gp.features, gp.features)
    others[same_family(gp.families, gp.families)] = 0.0
    np.fill_diagonal(others, 0.0)
    return float(np.quantile(others.max(axis=1, initial=0.0), _FAR))


def fit_kernel(
    features: Floats,
    families: Sequence[str],
    residuals: Floats,
    *,
    seed: int = 1,
    most_rows: int = 300,
    iterations: int = 40,
) -> Kernel:
    """Return the kernel of highest posterior density for at most `most_rows` drawn rows, by about 50 inversions."""
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
