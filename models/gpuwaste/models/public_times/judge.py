"""Judges the coefficients: each measured GPU by a fit that has not seen it. Their errors are the intervals' widths."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, log
from typing import Final, Literal, TypeVar

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

    @property
    def error(self) -> float:
        """Relative error, signed."""
        return self.predicted_s / self.step.step_s - 1

    @property
    def log_error(self) -> float:
        """The logarithm of measured over computed time."""
        return log(self.step.step_s / self.predicted_s)


Without = Literal["nothing", "gpu", "family"]
"""What a fit has not seen: nothing, the GPU, or all GPUs of its family."""


def judged_steps(fits: Fits, without: Without) -> list[JudgedStep]:
    """Return all steps whose graph is there, each by a fit that has not seen its GPU, or the GPU's family."""
    known = {gpu: fits.coefficients(left_out(fits.of, gpu, without)) for gpu in {each.gpu for each in fits.of.steps}}
    found = []
    for step in fits.of.steps:
        if step.case in fits.of.graphs:
            work = work_of(fits.of.graphs.program(step.case, step.layers))
            parts = step_parts(work, device(step.gpu), known[step.gpu], compiled=False)
            found.append(JudgedStep(step, parts.seconds()))
    return found


def step_factors(judged: Iterable[JudgedStep], without: str = "") -> dict[str, float]:
    """Return the median of measured over computed time by GPU, of undisturbed steps, without a model."""
    found: dict[str, list[float]] = {}
    for each in judged:
        if not each.step.disturbed and each.step.model != without:
            found.setdefault(each.step.gpu, []).append(each.step.step_s / each.predicted_s)
    return {gpu: float(np.median(ratios)) for gpu, ratios in sorted(found.items())}


def judged_with_factors(judged: Sequence[JudgedStep]) -> list[JudgedStep]:
    """Return steps with the factor of their GPU, which is from the other models; those without one are left out."""
    factors = {model: step_factors(judged, model) for model in {each.step.model for each in judged}}
    return [
        replace(each, predicted_s=each.predicted_s * factors[each.step.model][each.step.gpu])
        for each in judged
        if each.step.gpu in factors[each.step.model]
    ]


def left_out(of: PublicMeasurements, gpu: str, without: Without) -> list[str]:
    """Return the measured GPUs that a fit for a GPU must not see."""
    family = [each for each in of.gpus if device(each).family == device(gpu).family]
    return {"nothing": [], "gpu": [gpu], "family": [gpu, *family]}[without]


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
        seconds = moved.of / rates.moved / known.moved[moved.kind]
        found.setdefault(moved.kind, []).append(_errors(seconds, moved, least(of.vectors, moved)))
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
    """Return log errors of timm's steps by GPU and whether they train, of fits that have not seen the GPU.

    Training was measured on one GPU: its factor is from the models of the other half of the families.
    """
    found: dict[tuple[str, bool], Floats] = {}
    for gpu in sorted({each.gpu for each in fits.of.sums}):
        known = fits.coefficients([gpu])
        for training in (False, True):
            asked = [each for each in fits.of.sums if each.gpu == gpu and each.training is training]
            errors = np.array([log(each.step_s / half_seconds(each.sums, gpu, known, known.half)) for each in asked])
            if training and asked:
                families = sorted({each.family for each in asked})
                half = np.isin([each.family for each in asked], families[::2])
                errors -= np.where(half, np.median(errors[~half]), np.median(errors[half]))
            if asked:
                found[gpu, training] = errors
    return found


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
    """Return the widths of intervals: no precision is narrower than f32 on a GPU that was not measured.

    No step in TF32 was measured by anybody: it has the width of half precision.
    """
    measured = conformal(each.log_error for each in judged_with_factors(seen) if not each.step.disturbed)
    unmeasured = conformal(each.log_error for each in unseen if not each.step.disturbed)
    errors = half_errors(fits)
    half, training = (
        conformal(error for (_, trains), found in errors.items() if trains is of for error in found.tolist())
        for of in (False, True)
    )
    return Widths(
        measured=min(measured, unmeasured), unmeasured=unmeasured, tf32=max(half, unmeasured),
        half=max(half, unmeasured), half_training=max(training, half, unmeasured), compiled=log(1 + COMPILED),
    )  # fmt: skip


COMPILED: Final = 0.15
"""What the choice of kernels by a compiler adds: the cases that ran compiled are up to 19 % off."""


def mean_error(judged: Iterable[JudgedStep]) -> float:
    """Return the mean absolute relative error."""
    return float(np.mean([abs(each.error) for each in judged]))
