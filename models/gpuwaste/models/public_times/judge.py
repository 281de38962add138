"""Judges the coefficients: each measured GPU by a fit that has not seen it, and widths of intervals from these errors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, exp, log
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.public.coefficients import Coefficients, Widths
from gpuwaste.estimate.public.convolution_time import convolution_seconds
from gpuwaste.estimate.public.device_rates import rates_of
from gpuwaste.estimate.public.operators import work_of
from gpuwaste.estimate.public.product_time import product_seconds
from gpuwaste.estimate.public.step_seconds import step_parts
from gpuwaste.models.public_times.fit_all import Fits, PublicMeasurements
from gpuwaste.models.public_times.fit_half import half_seconds
from gpuwaste.models.public_times.fit_moved import KIND_OF
from gpuwaste.models.public_times.measured_operators import Timed
from gpuwaste.models.public_times.measured_steps import TimedStep
from gpuwaste.slurm.gpu_types import device

Floats = NDArray[np.float64]
COVERAGE: Final = 0.9
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """A measured step beside its computed time."""

    step: TimedStep
    predicted_s: float
    seen: bool
    """Whether operators of the GPU were among the measurements."""

    @property
    def error(self) -> float:
        """Relative error, signed."""
        return self.predicted_s / self.step.step_s - 1

    @property
    def log_error(self) -> float:
        """The logarithm of measured over computed time."""
        return log(self.step.step_s / self.predicted_s)


def judged_steps(fits: Fits, *, seen: bool) -> list[JudgedStep]:
    """Return all steps whose graph is there, each by a fit without its GPU, or with all if `seen`."""
    known = {gpu: fits.coefficients("" if seen else gpu) for gpu in sorted({each.gpu for each in fits.of.steps})}
    found = []
    for step in fits.of.steps:
        if step.case in fits.of.graphs:
            work = work_of(fits.of.graphs.program(step.case, step.layers))
            parts = step_parts(work, device(step.gpu), known[step.gpu], compiled=False)
            found.append(JudgedStep(step, parts.seconds(), seen and step.gpu in fits.of.gpus))
    return found


def judged_operators(of: PublicMeasurements, known: Coefficients, gpu: str) -> dict[str, Floats]:
    """Return relative errors of a GPU's operations on the test sizes by kind; of convolutions on all sizes.

    A latency has the host's part of a launch in it: the least one of the kind, on this GPU or on the others.
    """
    found: dict[str, list[Floats]] = {}
    one = device(gpu)
    rates, shape = rates_of(one, "f32", known), known.shape_of(one)
    for each in (each for each in of.products if each.gpu == gpu and each.test):
        errors = _errors(product_seconds(each.of, shape, rates), each, least(of.products, each))
        found.setdefault(each.kind, []).append(errors)
    for moved in (each for each in of.vectors if each.gpu == gpu and each.test):
        seconds = moved.of / rates.moved / known.moved[KIND_OF[moved.kind]]
        found.setdefault(KIND_OF[moved.kind], []).append(_errors(seconds, moved, least(of.vectors, moved)))
    for convolved in (each for each in of.convolutions if each.gpu == gpu):
        seconds = convolution_seconds(convolved.of, shape, rates, known.convolution, winograd=True)
        found.setdefault("conv", []).append(_errors(seconds, convolved, least(of.convolutions, convolved)))
    return {kind: np.concatenate(errors) for kind, errors in found.items()}


def least(among: Sequence[Timed[T]], of: Timed[T]) -> float:
    """Return the least latency of an operation's training file, of this GPU or the median of the others."""
    others = {each.gpu: float(each.seconds.min()) for each in among if each.kind == of.kind and not each.test}
    return others.get(of.gpu) or float(np.median(list(others.values())))


def _errors(predicted: Floats, of: Timed[T], constant: float) -> Floats:
    found: Floats = (predicted + constant) / of.seconds - 1
    return found


def half_errors(fits: Fits) -> dict[tuple[str, bool], Floats]:
    """Return log errors of timm's steps by GPU and whether they train, of fits that have not seen the GPU."""
    found: dict[tuple[str, bool], list[float]] = {}
    for gpu in sorted({each.gpu for each in fits.of.sums}):
        known = fits.coefficients(gpu)
        for each in (each for each in fits.of.sums if each.gpu == gpu):
            seconds = half_seconds(each.sums, gpu, known, known.half) * (known.half.training if each.training else 1)
            found.setdefault((gpu, each.training), []).append(log(each.step_s / seconds))
    return {key: np.array(errors) for key, errors in found.items()}


def conformal(errors: Iterable[float]) -> float:
    """Return the half width in which the next of exchangeable errors is with probability COVERAGE."""
    sizes = sorted(abs(each) for each in errors)
    place = min(len(sizes), ceil(COVERAGE * (len(sizes) + 1)))
    return sizes[place - 1]


def covered(judged: Sequence[JudgedStep], *, by: str) -> float:
    """Return the share of steps inside of a width from the others: of other GPUs (`gpu`) or other models (`model`)."""
    inside = 0
    for each in judged:
        key = getattr(each.step, by)
        width = conformal(one.log_error for one in judged if getattr(one.step, by) != key)
        inside += abs(each.log_error) <= width
    return inside / len(judged)


def widths_of(fits: Fits, unseen: Sequence[JudgedStep], seen: Sequence[JudgedStep]) -> Widths:
    """Return the widths of intervals. TF32 was measured by nobody: as half precision."""
    measured = conformal(each.log_error for each in seen if each.seen and not each.step.disturbed)
    unmeasured = conformal(each.log_error for each in unseen if not each.step.disturbed)
    half = conformal(error for errors in half_errors(fits).values() for error in errors.tolist())
    wide = max(half, unmeasured)
    return Widths(
        measured=min(measured, unmeasured), unmeasured=unmeasured, tf32=wide, half=wide, compiled=log(1 + COMPILED)
    )


COMPILED: Final = 0.15
"""What the choice of kernels by a compiler adds: the cases that ran compiled are up to 19 % off."""


def mean_error(judged: Iterable[JudgedStep]) -> float:
    """Return the mean absolute relative error."""
    return float(np.mean([abs(each.error) for each in judged]))


def span(width: float) -> tuple[float, float]:
    """Return the factors of a half width in the logarithm."""
    return exp(-width), exp(width)
