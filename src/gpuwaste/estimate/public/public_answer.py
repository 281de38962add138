"""The estimate of a step from public measurements, with its interval and its basis, or the reason why there is none."""

from collections.abc import Mapping
from math import exp, hypot
from typing import Final

from gpuwaste.core.units import say_percent
from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.program import Program
from gpuwaste.estimate.public.coefficients import Coefficients, Part, shipped
from gpuwaste.estimate.public.device_rates import HALF
from gpuwaste.estimate.public.operators import StepWork, work_of
from gpuwaste.estimate.public.step_seconds import StepParts, step_parts
from gpuwaste.estimate.step_time import MAX_UNKNOWN, MAX_UNMEASURED, not_computable
from gpuwaste.slurm.gpu_types import GpuType, find, one_of, types_of

DISPATCH_S: Final = 10e-6
"""Seconds that a framework may need for an operation: a step of many small ones takes that long whatever the GPU is."""
_CARRIED: Final = 0.1  # share of the time from which a precision widens the interval
COMPILED: Final = frozenset({"hlo", "stablehlo", "jax"})
"""Sources of programs that XLA compiles."""
_PASSES: Final = 3.0  # a training step in forward passes, by its operations
_NAMES: Final = {"f32": "FP32", "tf32": "TF32", "f16": "half-precision", "bf16": "half-precision"}


def public_time(
    program: Program,
    work: StepWork,
    gpu: str,
    known: Coefficients | None = None,
    *,
    factors: Mapping[Part, float] | None = None,
    corrected_by: str = "",
) -> StepTime:
    """Return the time of one step on a type of GPU; `work` is the program's.

    `factors` are a site's corrections of the parts, from its measurements of the type `corrected_by`.
    """
    device, known = find(gpu), known or shipped()
    if device is None:
        return StepTime(gpu=gpu, refused=_unknown_type(gpu))
    refused = not_computable(program.unknown_trips, work.launches) or _custom(work)
    if refused:
        return StepTime(gpu=device.name, refused=refused)
    parts = step_parts(work, device, known, compiled=program.source in COMPILED)
    seconds = parts.seconds(factors)
    if parts.uncovered > MAX_UNMEASURED * (seconds + parts.uncovered):
        return StepTime(gpu=device.name, refused=_uncovered(parts, seconds))
    precision = _precision(parts, parts.seconds())
    seconds *= _training_factor(program, precision, known)
    if precision == "f32" and not factors:
        seconds *= known.steps.get(device.name, 1.0)
    width = width_of(device, precision, known, program)
    return StepTime(
        gpu=device.name,
        step_s=seconds + parts.uncovered,
        low_s=seconds * exp(-width),
        high_s=max(seconds * exp(width), work.launches * DISPATCH_S) + parts.uncovered,
        basis=basis_of(device, precision, known, corrected_by=corrected_by),
        public=corrected_by != device.name,
    )


def public_parts(program: Program, gpu: str) -> Mapping[Part, float]:
    """Return the seconds of a step by part, those that a site's factors are for; empty where there is no time."""
    device, known = find(gpu), shipped()
    work = work_of(program)
    if device is None or program.unknown_trips or _custom(work):
        return {}
    parts = step_parts(work, device, known, compiled=program.source in COMPILED)
    if parts.uncovered:
        return {}
    factor = _training_factor(program, _precision(parts, parts.seconds()), known)
    return {part: factor * seconds for part, seconds in parts.parts.items()}


def _training_factor(program: Program, precision: str, known: Coefficients) -> float:
    """Return measured over computed time of training steps in half precision."""
    return known.half.training / _PASSES if precision in HALF and program.training else 1.0


def width_of(device: GpuType, precision: str, known: Coefficients, program: Program) -> float:
    """Return the half width of the 90 % interval in the logarithm of time."""
    widths = known.widths
    if precision in HALF:
        width = widths.half_training if program.training else widths.half
    elif precision == "tf32":
        width = widths.tf32
    else:
        width = widths.measured if device.name in known.steps else widths.unmeasured
    return hypot(width, widths.compiled) if program.source in COMPILED else width


def basis_of(device: GpuType, precision: str, known: Coefficients, *, corrected_by: str = "") -> str:
    """Return what the estimate rests on, in one line."""
    source = "timm" if precision in HALF | {"tf32"} else "neusight"
    measured = [gpu for gpu, sources in known.measured.items() if source in sources]
    others = len([gpu for gpu in measured if gpu != device.name])
    name = _NAMES["f16" if source == "timm" else "f32"]
    if device.name in measured:
        text = f"from public {name} measurements on this GPU type and {others} others"
    else:
        text = f"from public {name} measurements on {others} other GPUs; this GPU was not measured"
    if precision == "tf32":
        text += "; of TF32 only rates of products are published"
    return f"{text}; corrected by this site's measurements of {corrected_by}" if corrected_by else text


def _precision(parts: StepParts, seconds: float) -> str:
    """Return the element type that makes the estimate least certain, of those that carry a share of the time."""
    carried = {dtype for dtype, each in parts.by_type.items() if each > _CARRIED * seconds}
    for dtype in ("bf16", "f16", "tf32"):
        if dtype in carried:
            return dtype
    return "f32"


def _custom(work: StepWork) -> str:
    share = work.unknown / max(work.unknown + work.known, 1.0)
    if share <= MAX_UNKNOWN:
        return ""
    return f"kernels that only their author knows have {say_percent(share)} of the bytes and FLOPs: measure the program"


def _uncovered(parts: StepParts, seconds: float) -> str:
    named = sorted(dtype for dtype in parts.by_type if dtype not in _NAMES)
    share = parts.uncovered / (seconds + parts.uncovered)
    return (
        f"products in {', '.join(named)} take {say_percent(share)} of the time or more, and nobody has published such "
        "times: gpuwaste model calibrate measures them"
    )


def _unknown_type(gpu: str) -> str:
    if types := types_of(gpu):
        return f"{gpu} can be {one_of(types)}: give one of them"
    return f"{gpu[:60]!r} is not in the table of GPU types, and not calibrated"
