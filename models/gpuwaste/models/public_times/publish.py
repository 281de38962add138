"""Makes the coefficients that are shipped, with the widths of their intervals and their errors."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from msgspec.structs import replace

from gpuwaste.estimate.public.coefficients import Coefficients, PublicError, Widths
from gpuwaste.models.public_times.fit_all import Fits
from gpuwaste.models.public_times.judge import (
    JudgedStep,
    half_errors,
    judged_steps,
    step_factors,
    widths_of,
)
from gpuwaste.slurm.gpu_types import device

_DIGITS: Final = 4
_AMD: Final = "cdna"


def shipped_coefficients(fits: Fits, made: str) -> Coefficients:
    """Return the coefficients of all measured GPUs; `made` is the day, as YYYY-MM-DD."""
    seen = judged_steps(fits, "nothing")
    widths = widths_of(fits, judged_steps(fits, "family"), seen)
    errors = {**step_errors(judged_steps(fits, "gpu"), widths), **sum_errors(fits, widths)}
    return replace(fits.coefficients(), made=made, widths=widths, steps=step_factors(seen), errors=errors)


def step_errors(judged: Iterable[JudgedStep], widths: Widths) -> dict[str, PublicError]:
    """Return the errors of f32 steps by vendor and mode; of training also without the steps that were disturbed."""
    cases: dict[str, list[JudgedStep]] = {}
    for each in judged:
        vendor = "AMD" if device(each.step.gpu).family == _AMD else "NVIDIA"
        mode = "training" if each.step.training else "inference"
        cases.setdefault(f"FP32 {mode}, {vendor}", []).append(each)
        if each.step.training and not each.step.disturbed:
            cases.setdefault(f"FP32 {mode}, {vendor}, undisturbed", []).append(each)
    return {
        case: PublicError(
            steps=len(found),
            mean=float(np.mean([abs(each.error) for each in found])),
            inside=float(np.mean([abs(each.log_error) <= widths.unmeasured for each in found])),
        )
        for case, found in sorted(cases.items())
    }


def sum_errors(fits: Fits, widths: Widths) -> dict[str, PublicError]:
    """Return the errors of half precision, by mode."""
    found = {}
    for training, width in ((False, widths.half), (True, widths.half_training)):
        errors = np.concatenate([each for (_, trains), each in half_errors(fits).items() if trains is training])
        found[f"half precision {'training' if training else 'inference'}, NVIDIA"] = PublicError(
            steps=len(errors),
            mean=float(np.mean(np.abs(np.expm1(-errors)))),
            inside=float(np.mean(np.abs(errors) <= width)),
        )
    return found


def rounded(value: object) -> object:
    """Return plain data whose numbers have the digits that a fit can give."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value
