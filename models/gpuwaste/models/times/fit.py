"""A time model of one GPU type, fitted to programs measured on it."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from gpuwaste.core.errors import NoDataError
from gpuwaste.estimate.gp import Kernel, ResidualGp, same_family
from gpuwaste.estimate.roofline import Roofline, keys_of, work_of
from gpuwaste.estimate.time_features import features_of, mix_overlap
from gpuwaste.estimate.time_model import FEW, FitSupport, TimeModel
from gpuwaste.models.times.fit_kernel import fit_kernel
from gpuwaste.models.times.measurements import Measurements

Floats = NDArray[np.float64]
MIN_ROWS: Final = 50  # below it a model is refused: scale from another type, or measure more
MIN_KEY_ROWS: Final = 5  # with a kind and element type, before it gets coefficients of its own
LEVEL: Final = 0.9
MIN_OWN: Final = 20  # own runs before their misses widen the intervals
_FAR: Final = 0.02  # share of programs that, without their family, would be refused as unlike all others
_FLOOR_Z: Final = 0.6  # of the normal distribution's width: a lucky sample does not make intervals narrow
_NORMAL_Z: Final = 1.645
_MIN_WIDTH_ROWS: Final = 30
_FAMILY_FOLDS: Final = 3
_NESTED_ROWS: Final = 150  # that the kernels of these folds are found with: they only set one width
_LEAST_S: Final = 1e-12


def fit_roofline(rows: Measurements) -> Roofline:
    """Return the coefficients, none negative, with the least squares of relative errors (Lawson and Hanson 1974)."""
    keys = keys_of(rows.sums, MIN_KEY_ROWS)
    work = work_of(rows.sums, keys).reshape(len(rows), -1)
    design = np.concatenate([work, np.ones((len(rows), 1))], axis=1)
    scale = design.max(axis=0)
    scale[scale == 0] = 1.0
    found, _ = nnls(design / scale / rows.seconds[:, None], np.ones(len(rows)), maxiter=100 * design.shape[1])
    coefficients = found / scale
    return Roofline(keys, coefficients[:-1].reshape(len(keys), -1), float(coefficients[-1]))


def fit_model(gpu: str, rows: Measurements, *, seed: int = 1, like: TimeModel | None = None) -> TimeModel:
    """Return the model of a type; `like` was fitted to fewer of the rows, and its kernel and few_z are taken.

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
    """Return the process after it saw `rows`, with roofline and kernel of `fitted`."""
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
    """Return the half width for families of which little was measured.

    Roofline and kernel know nothing of those families: fitted with them, they would be too sure of the few.
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
    """Return the group of each row inside if one to FEW of each family had been measured; None for those."""
    groups: list[Hashable] = [name if here else None for name, here in zip(families, inside, strict=True)]
    for name in sorted(set(families[inside])):
        places = rng.permutation(np.flatnonzero(families == name))
        for place in places[: rng.integers(1, FEW + 1)]:
            groups[int(place)] = None
    return groups


def _misses(gp: ResidualGp, groups: Sequence[Hashable]) -> Floats:
    """Return by how many standard deviations each row with a group is missed, predicted without its group."""
    mean, sd = gp.left_out(groups)
    found: Floats = np.abs(gp.residuals - mean) / sd
    return found[[group is not None for group in groups]]


def _half_width(misses: Floats) -> float:
    """Return how many standard deviations reach to 90 % of the rows; few rows give the normal distribution's."""
    if len(misses) < _MIN_WIDTH_ROWS:
        return _NORMAL_Z
    return max(_conformal(misses), _FLOOR_Z * _NORMAL_Z)


def _conformal(misses: Floats) -> float:
    """Return the quantile that holds for one more draw (split conformal prediction: Vovk 2005)."""
    rank = int(np.ceil((len(misses) + 1) * LEVEL))
    return float(np.sort(misses)[min(rank, len(misses)) - 1])


def _widened(model: TimeModel, rows: Measurements) -> float:
    """Return by what the site's own runs, each left out, widen the intervals: 1 where 90 % of them are inside."""
    if rows.own.sum() < MIN_OWN:
        return 1.0
    misses = _misses(model.gp, list(range(len(rows))))[rows.own]
    return max(1.0, _conformal(misses) / model.grounds.known_z)


def _least_nearness(gp: ResidualGp) -> float:
    """Return the nearness below which a program resembles nothing measured: few families are as far from all others."""
    others = mix_overlap(gp.features, gp.features)
    others[same_family(gp.families, gp.families)] = 0.0
    np.fill_diagonal(others, 0.0)
    return float(np.quantile(others.max(axis=1, initial=0.0), _FAR))
