"""What measurements of one type of GPU say about another: a site's calibration, and the slowdown on a smaller GPU."""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.public.coefficients import Coefficients, Part
from gpuwaste.estimate.public.operators import work_of
from gpuwaste.estimate.public.site_shift import factors_for
from gpuwaste.estimate.public.step_seconds import step_parts
from gpuwaste.models.public_times.fit_all import Fits
from gpuwaste.models.public_times.measured_steps import TimedStep
from gpuwaste.models.public_times.site_fit import LEAST, error_with, fit_factors
from gpuwaste.slurm.gpu_rates import peak_of, published_flops
from gpuwaste.slurm.gpu_types import GpuType, device

FAR: Final = 0.1
Parts = list[Mapping[Part, float]]
Floats = NDArray[np.float64]
Rate = Callable[[GpuType, str], float]


def calibrated(fits: Fits) -> dict[str, Any]:
    """Return the mean error on each other type before and after the factors of one type's steps.

    Each type with steps enough is taken as calibrated in turn; the coefficients have not seen the other type.
    Disturbed steps are in neither. The steps of both types are of the same models.
    """
    steps = [each for each in fits.of.steps if each.case in fits.of.graphs and not each.disturbed]
    gpus = sorted({each.gpu for each in steps})
    pairs = []
    for source, target in permutations(gpus, 2):
        learnt = [each for each in steps if each.gpu == source]
        asked = [each for each in steps if each.gpu == target]
        if len(learnt) >= LEAST:
            known = fits.coefficients([target])
            factors = fit_factors(_parts(fits, learnt, known), _seconds(learnt))
            moved, _ = factors_for(device(target), {source: factors})
            parts, seconds = _parts(fits, asked, known), _seconds(asked)
            errors = error_with({}, parts, seconds), error_with(moved, parts, seconds)
            pairs.append((source, len(learnt), target, len(asked), *errors))
    return {"pairs": pairs, "means": _means(pairs)}


def _means(pairs: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the means of pairs of one family and of different ones."""
    found = {}
    for name, same in (("of one family", True), ("of two families", False)):
        part = [each for each in pairs if (device(each[0]).family == device(each[2]).family) is same]
        better = sum(each[5] < each[4] for each in part)
        before, after = (float(np.mean([each[place] for each in part])) for place in (4, 5))
        found[name] = {"n": len(part), "better": better, "before": before, "after": after}
    return found


def _parts(fits: Fits, steps: Sequence[TimedStep], known: Coefficients) -> Parts:
    programs = [fits.of.graphs.program(each.case, each.layers) for each in steps]
    return [
        step_parts(work_of(program), device(each.gpu), known, compiled=False).parts
        for program, each in zip(programs, steps, strict=True)
    ]


def _seconds(steps: Sequence[TimedStep]) -> Floats:
    return np.array([each.step_s for each in steps])


def slowdowns(steps: Sequence[TimedStep]) -> dict[str, Any]:
    """Return how far the slowdown on a GPU with less memory is off: by peaks of data sheets, by published rates.

    It is the larger of two ratios, of bandwidth and of arithmetic, as where the busy part of the larger GPU is all.
    """
    by_case: dict[str, dict[str, float]] = {}
    for each in steps:
        by_case.setdefault(each.case, {})[each.gpu] = each.step_s
    errors: dict[str, list[float]] = {"peaks of data sheets": [], "published rates": []}
    for times in by_case.values():
        for larger, smaller in permutations(sorted(times), 2):
            one, other = device(larger), device(smaller)
            if one.memory_b > other.memory_b:
                true = times[smaller] / times[larger]
                errors["peaks of data sheets"].append(_slowdown(one, other, peak_of) / true - 1)
                errors["published rates"].append(_slowdown(one, other, published_flops) / true - 1)
    return {name: _off(np.array(found)) for name, found in errors.items()}


def _off(errors: Floats) -> dict[str, float]:
    low, high = float(np.mean(errors < -FAR)), float(np.mean(errors > FAR))
    mean = float(np.abs(errors).mean())
    return {"n": len(errors), "mean": mean, "median": float(np.median(errors)), "low": low, "high": high}


def _slowdown(larger: GpuType, smaller: GpuType, rate: Rate) -> float:
    computing = rate(larger, "f32") / rate(smaller, "f32")
    return max(larger.bandwidth_b_s / smaller.bandwidth_b_s, computing)
