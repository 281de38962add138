"""Step times from public measurements, judged on the GPUs, families of GPUs and models that a fit has not seen.

NeuSight's figures (ASPLOS 2025) are of its whole artifact, which has more GPUs than its published data.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from bench.estimate_baselines import judged_baselines
from bench.estimate_neighbours import calibrated, slowdowns
from gpuwaste.estimate.public.coefficients import shipped
from gpuwaste.models.public_times.fit_all import Fits, PublicMeasurements
from gpuwaste.models.public_times.judge import (
    JudgedStep,
    conformal,
    covered,
    half_errors,
    judged_operators,
    judged_steps,
    judged_with_factors,
)
from gpuwaste.models.public_times.measured_steps import TimedStep
from gpuwaste.slurm.gpu_types import device

Floats = NDArray[np.float64]


def _every(_: TimedStep) -> bool:
    return True


CASES: Final[dict[str, tuple[str, bool, Callable[[TimedStep], bool]]]] = {
    "training, NVIDIA": ("NVIDIA", True, _every),
    "training, NVIDIA, undisturbed": ("NVIDIA", True, lambda step: not step.disturbed),
    "inference, NVIDIA": ("NVIDIA", False, _every),
    "inference, NVIDIA, without P4": ("NVIDIA", False, lambda step: step.gpu != "p4"),
    "inference, NVIDIA, not compiled": ("NVIDIA", False, lambda step: not step.compiled),
    "training, AMD": ("AMD", True, _every),
    "training, AMD, undisturbed": ("AMD", True, lambda step: not step.disturbed),
    "inference, AMD": ("AMD", False, _every),
}
"""Vendor, whether it trains, and which of the steps."""
NEUSIGHT: Final = {
    "training, NVIDIA": 0.071,
    "inference, NVIDIA": 0.082,
    "training, AMD": 0.157,
    "inference, AMD": 0.088,
}
GOALS: Final = {"training, NVIDIA": 0.07, "inference, NVIDIA": 0.08, "training, AMD": 0.16, "inference, AMD": 0.09}
COVERAGE: Final = (0.87, 0.93)
MEDIAN, P90 = 0.10, 0.30  # of one operation
LEFT_OUT: Final = {"GPU left out": "gpu", "family of GPUs left out": "family", "model left out": "model"}
_DIGITS: Final = 4
_PRODUCTS: Final = ("mm", "bmm")


def measured(folder: Path, seed: int = 1) -> dict[str, Any]:
    """Return all tables of the measurements under a folder: neusight/ and timm/."""
    of = PublicMeasurements.read(folder)
    fits = Fits(of)
    judged = {
        "GPU left out": judged_steps(fits, "gpu"),
        "family of GPUs left out": judged_steps(fits, "family"),
        "model left out": judged_with_factors(judged_steps(fits, "nothing")),
    }
    baselines = judged_baselines(of, seed)
    found = {
        "steps": {name: _errors(steps) for name, steps in judged.items()},
        "baselines": {name: _errors(steps) for name, steps in baselines.items()},
        "gpus": {name: _by_gpu(judged[name]) for name in ("GPU left out", "family of GPUs left out")},
        "operators": _operators(fits),
        "half": _half(fits),
        "coverage": _coverage(judged),
        "neighbours": calibrated(fits),
        "slowdowns": slowdowns(of.steps),
    }
    rounded: dict[str, Any] = _rounded(found)
    return rounded


def text(found: dict[str, Any]) -> str:
    """Return the tables; a goal that is not reached has `missed` behind it."""
    steps = ("", "N", *found["steps"], *found["baselines"], "NEUSIGHT", "GOAL")
    kinds = ("", "N", "MEDIAN", "GOAL", "P90", "GOAL")
    inside = ("", "N", "WIDTH FROM THE OTHERS", "GOAL", "THE SHIPPED WIDTH")
    slower = ("BY", "PAIRS", "MEAN ERROR", "MEDIAN, SIGNED", "10 % TOO LOW", "10 % TOO HIGH")
    parts = [
        _table("steps of whole models, FP32, mean error", steps, _step_rows(found)),
        _table("by GPU: mean error (median, signed)", ("GPU", "", "N", *found["gpus"]), _gpu_rows(found["gpus"])),
        _table("one operation, GPU left out, test sizes", kinds, _operator_rows(found["operators"])),
        _table("half precision (timm), GPU left out", ("", "N", "MEAN", "INSIDE A WIDTH FROM OTHERS"), [
            (name, each["n"], percent(each["mean"]), percent(each["inside"])) for name, each in found["half"].items()
        ]),
        _table("steps inside of the 90 % interval", inside, [
            _coverage_row(name, each) for name, each in found["coverage"].items()
        ]),
        _table("one type calibrated, the others by its factors", ("CALIBRATED", "N", "OTHER", "N", "BEFORE", "AFTER"), [
            (*each[:4], percent(each[4]), percent(each[5])) for each in found["neighbours"]["pairs"]
        ]),
        _means(found["neighbours"]),
        _table("slowdown on a smaller GPU", slower, [
            (name, each["n"], *(percent(each[key]) for key in ("mean", "median", "low", "high")))
            for name, each in found["slowdowns"].items()
        ]),
    ]  # fmt: skip
    return "\n\n".join(parts)


def percent(value: float | None) -> str:
    """Return a ratio as text."""
    return "" if value is None else f"{100 * value:.1f} %"


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return f"{title}\n" + tabulate(list(rows), headers=heads, tablefmt="plain", disable_numparse=True)


def _verdict(value: float, goal: tuple[float, float] | float | None) -> str:
    if goal is None:
        return ""
    least, most = goal if isinstance(goal, tuple) else (0.0, goal)
    words = f"{percent(least)} to {percent(most)}" if least else percent(most)
    return words if least <= value <= most else f"{words}: missed"


def _step_rows(found: Mapping[str, Any]) -> Iterable[Sequence[object]]:
    ways = {**found["steps"], **found["baselines"]}
    for case in CASES:
        first = found["steps"]["GPU left out"][case]
        errors = [percent(way[case]["mean"]) for way in ways.values()]
        yield case, first["n"], *errors, percent(NEUSIGHT.get(case)), _verdict(first["mean"], GOALS.get(case))


def _gpu_rows(gpus: Mapping[str, Any]) -> Iterable[Sequence[object]]:
    first = next(iter(gpus.values()))
    for key in first:
        gpu, mode = key.split(" ")
        errors = [f"{percent(way[key]['mean'])} ({100 * way[key]['median']:+.1f})" for way in gpus.values()]
        yield gpu, mode, first[key]["n"], *errors


def _operator_rows(operators: Mapping[str, Any]) -> Iterable[Sequence[object]]:
    for name, each in operators.items():
        goals = (_verdict(each["median"], MEDIAN), _verdict(each["p90"], P90)) if name == "all" else ("", "")
        yield name, each["n"], percent(each["median"]), goals[0], percent(each["p90"]), goals[1]


def _coverage_row(name: str, each: Mapping[str, Any]) -> Sequence[object]:
    return name, each["n"], percent(each["others"]), _verdict(each["others"], COVERAGE), percent(each["shipped"])


def _means(neighbours: Mapping[str, Any]) -> str:
    words = [
        f"{name} {percent(each['before'])} before, {percent(each['after'])} after, "
        f"{each['better']} of {each['n']} better"
        for name, each in neighbours["means"].items()
    ]
    return "mean of the pairs: " + "; ".join(words)


def _vendor(step: TimedStep) -> str:
    return "AMD" if device(step.gpu).family == "cdna" else "NVIDIA"


def _errors(judged: Iterable[JudgedStep]) -> dict[str, Any]:
    steps = list(judged)
    return {
        case: _summary(
            [each for each in steps if _vendor(each.step) == vendor and each.step.training is trains and of(each.step)]
        )
        for case, (vendor, trains, of) in CASES.items()
    }


def _summary(judged: Sequence[JudgedStep]) -> dict[str, float]:
    errors = np.array([each.error for each in judged])
    return {"n": len(errors), "mean": float(np.abs(errors).mean()), "median": float(np.median(errors))}


def _by_gpu(judged: Sequence[JudgedStep]) -> dict[str, Any]:
    modes: dict[str, list[JudgedStep]] = {}
    for each in judged:
        modes.setdefault(f"{each.step.gpu} {'training' if each.step.training else 'inference'}", []).append(each)
    return {key: _summary(found) for key, found in sorted(modes.items())}


def _operators(fits: Fits) -> dict[str, Any]:
    kinds: dict[str, list[Floats]] = {}
    for gpu in fits.of.gpus:
        for kind, errors in judged_operators(fits.of, fits.coefficients([gpu]), gpu).items():
            group = "products" if kind in _PRODUCTS else "convolutions" if kind == "conv" else "vectors"
            for key in (kind, group, "all"):
                kinds.setdefault(key, []).append(np.abs(errors))
    order = [*sorted(kinds.keys() - {"products", "vectors", "convolutions", "all", "conv"}), "products", "vectors"]
    return {key: _spread(np.concatenate(kinds[key])) for key in [*order, "convolutions", "all"]}


def _spread(sizes: Floats) -> dict[str, float]:
    return {"n": len(sizes), "median": float(np.median(sizes)), "p90": float(np.quantile(sizes, 0.9))}


def _half(fits: Fits) -> dict[str, Any]:
    """Return mean errors; inside a width from the other GPU's steps, which training does not have."""
    known = half_errors(fits)
    found = {}
    for (gpu, trains), errors in known.items():
        others = [each for (other, mode), part in known.items() if mode is trains and other != gpu for each in part]
        inside = float((np.abs(errors) <= conformal(others)).mean()) if others else None
        mean = float(np.abs(np.expm1(-errors)).mean())
        found[f"{gpu} {'training' if trains else 'inference'}"] = {"n": len(errors), "mean": mean, "inside": inside}
    return found


def _coverage(judged: Mapping[str, Sequence[JudgedStep]]) -> dict[str, Any]:
    widths = shipped().widths
    found = {}
    for name, steps in judged.items():
        width = widths.measured if LEFT_OUT[name] == "model" else widths.unmeasured
        by = "model" if LEFT_OUT[name] == "model" else "gpu"
        for kind in ("undisturbed", "all"):
            part = [each for each in steps if kind == "all" or not each.step.disturbed]
            inside = float(np.mean([abs(each.log_error) <= width for each in part]))
            found[f"{name}, {kind}"] = {"n": len(part), "others": covered(part, by=by), "shipped": inside}
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value
