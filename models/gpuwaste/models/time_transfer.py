"""The model of a GPU type from another type's, with few programs measured on it; never fitted only to the few.

The old roofline is scaled by the data sheets, then its three groups of coefficients (executions, FLOPs, bytes) by a
factor each, held near 1; a Gaussian process on the remaining errors corrects by op mix. A program that was measured on
the old type keeps the old process' knowledge of it.
"""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from gpuwaste.core.errors import NoDataError
from gpuwaste.estimate.gaussian_process import BLOCKS, KERNEL_SIZE, Kernel, ResidualGp, distances, features_of
from gpuwaste.estimate.roofline import Roofline, between, work_of
from gpuwaste.estimate.time_model import TimeModel
from gpuwaste.models.time_fit import Measurements
from gpuwaste.slurm.gpu_types import GpuType

Floats = NDArray[np.float64]
MIN_ROWS: Final = 10
_ERROR: Final = 0.06  # of the logarithm of a ratio, when the three factors are fitted
_FACTOR_SD: Final = 0.4  # of the logarithm of a factor around that of the data sheets
_LENGTHS: Final = (0.5, 1.0, 2.0, 4.0)
_NOISES: Final = (0.02, 0.05)
_LEFT_SD: Final = 0.15  # of the errors that remain after the factors, by op mix
_COMPARED: Final = frozenset({"time_by_kind"})
_NEVER: Final = -30.0  # the logarithm of a variance or a weight without effect


def transfer(old: TimeModel, source: GpuType, target: GpuType, rows: Measurements) -> TimeModel:
    """Return the model of `target`, on which `rows` were measured. Raises NoDataError for too few."""
    if len(rows) < MIN_ROWS:
        raise NoDataError(
            f"{target.name}: {len(rows)} measured programs: at least {MIN_ROWS} are needed: resume the calibration"
        )
    work = work_of(rows.sums, old.base.keys)
    features = features_of(old.base, work)
    kept, _ = old.gp.predict(features, rows.families)
    aim = np.log(rows.seconds) - kept
    roofline = _fitted(old.roofline.scaled(*between(source, target)), work, aim)
    left = aim - np.log(roofline.seconds(work))
    correction = ResidualGp(_kernel(features, left), features, [""] * len(rows), left)
    grounds = replace(
        old.grounds,
        gpu=target.name,
        programs=len(rows),
        families=len(set(rows.families)),
        runs=int(rows.own.sum()),
        scaled_from=source.name,
        hardware="",
    )
    return TimeModel(grounds, roofline, old.base, old.gp, correction)


def _fitted(sheet: Roofline, work: Floats, aim: Floats) -> Roofline:
    def scaled(logs: Floats) -> Roofline:
        executions, flops, moved = np.exp(logs).tolist()
        return sheet.scaled(executions, lambda _: flops, moved)

    def loss(logs: Floats) -> float:
        misses = np.log(scaled(logs).seconds(work)) - aim
        return float((misses**2).sum() / _ERROR**2 + (logs**2).sum() / _FACTOR_SD**2)

    return scaled(np.asarray(minimize(loss, np.zeros(3)).x, dtype=np.float64))


def _kernel(features: Floats, left: Floats) -> Kernel:
    """Return the one of eight kernels under which the remaining errors are most probable; too few rows for a search."""
    apart = distances(features, features)
    centred = left - np.median(left)

    def surprise(kernel: Kernel) -> float:
        factor = cho_factor(kernel.mix(apart) + kernel.noise * np.eye(len(left)), lower=True)
        return 0.5 * float(centred @ cho_solve(factor, centred)) + float(np.log(np.diag(factor[0])).sum())

    return min((_numbers(length, noise) for length in _LENGTHS for noise in _NOISES), key=surprise)


def _numbers(length: float, noise: float) -> Kernel:
    weights = [-2 * np.log(length) if name in _COMPARED else _NEVER for name, _ in BLOCKS]
    numbers = np.full(KERNEL_SIZE, _NEVER)
    numbers[0], numbers[4], numbers[5] = 2 * np.log(_LEFT_SD), 0.0, 0.0
    numbers[6:-1], numbers[-1] = weights, 2 * np.log(noise)
    return Kernel(numbers)
