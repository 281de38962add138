"""What predictions and the estimate of its program expect for a candidate: run time, end, cost, risk, fit."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gpuwaste.advice.predict.prediction_types import Source, TargetPrediction
from gpuwaste.core.fields import Interval
from gpuwaste.core.units import HOUR_S, format_size
from gpuwaste.jobs.program_estimate import ProgramEstimate
from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.slurm.accounting.tres_amounts import billing
from gpuwaste.slurm.submit.job_request import JobRequest, request_amounts

if TYPE_CHECKING:
    from gpuwaste.estimate.hybrid import EstimatedRunTime

_LARGEST = "MAX_TRES"
WALLTIME: Final = "walltime"
_SOURCES: Final[dict[str, Source]] = {"own runs": "own runs", "white box": "white box"}
_LEVELS: Final = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True)
class Cost:
    """Run time in seconds, GPU-hours and billing-hours; None means unknown."""

    run_s: int | None
    gpu_hours: float | None
    billing_hours: float | None


def cost_of(asked: PlanRequest, jobs: int = 1) -> Cost:
    """Return the cost of one run: the expected median run time, at most the limit; if unknown, the limit."""
    request = asked.request
    target, limit = asked.target("walltime"), request.time_limit_s
    median = quantile(target.quantiles, 0.5) if target else None
    known = [value for value in (median, limit) if value is not None]
    if not known:
        return Cost(None, None, None)
    run_s = math.ceil(min(known))
    hours = run_s * jobs / HOUR_S
    partition = asked.site.partitions.get(asked.partition)
    largest = _LARGEST in asked.site.config.settings.get("PriorityFlags", "")
    weights = partition.billing_weights if partition else None
    billed = None if weights is None else billing(weights, request_amounts(request), largest=largest) * hours
    return Cost(run_s, request.gpus * hours, billed)


def risk_of(request: JobRequest, targets: Iterable[TargetPrediction]) -> tuple[float | None, str]:
    """Return the probability and name of the likeliest failure: failure, timeout, out of memory; else (None, "")."""
    by_name = {target.target: target for target in targets}
    found: dict[str, float | None] = {name: by_name[name].p for name in ("failure", "timeout") if name in by_name}
    if "memory" in by_name and request.mem_b:
        found["out of memory"] = above(by_name["memory"].quantiles, request.mem_b)
    if found.get("timeout") is None and "walltime" in by_name and request.time_limit_s:
        found["timeout"] = above(by_name["walltime"].quantiles, request.time_limit_s)
    known = {name: p for name, p in found.items() if p is not None}
    name = max(known, key=lambda each: (known[each], each), default="")
    return known.get(name), name


def quantile(quantiles: Mapping[str, float], level: float) -> float | None:
    """Return the value at a level, linear between the known levels; outside of them that of the nearest one."""
    points = sorted((float(at), value) for at, value in quantiles.items())
    if not points:
        return None
    if level <= points[0][0]:
        return points[0][1]
    for (low, first), (high, last) in pairwise(points):
        if low <= level <= high:
            return first + (last - first) * (level - low) / (high - low)
    return points[-1][1]


def above(quantiles: Mapping[str, float], value: float) -> float | None:
    """Return the probability of more than `value`; beyond the highest level half of the rest."""
    points = sorted((float(at), each) for at, each in quantiles.items())
    if not points:
        return None
    if value < points[0][1]:
        return 1 - points[0][0] / 2
    for (low, first), (high, last) in pairwise(points):
        if first <= value < last:
            return 1 - (low + (high - low) * (value - first) / (last - first))
    return (1 - points[-1][0]) / 2


def history_of(target: TargetPrediction | None) -> "EstimatedRunTime | None":
    """Return the run time expected by the model of job history, None where it has none."""
    from gpuwaste.estimate.hybrid import EstimatedRunTime  # noqa: PLC0415 a host without this package plans without programs

    median = quantile(target.quantiles, 0.5) if target else None
    if target is None or median is None:
        return None
    levels = sorted(target.quantiles, key=float)
    low, high = levels[0], levels[-1]
    ranged = len(levels) > 1
    return EstimatedRunTime(
        "history",
        median,
        target.quantiles[low] if ranged else None,
        target.quantiles[high] if ranged else None,
        round(float(high) - float(low), 6) if ranged else None,
        basis=f"{target.basis} past jobs" if target.source == "history" else f"{target.source} of job history",
    )


def with_program(asked: PlanRequest, found: ProgramEstimate | None) -> PlanRequest:
    """Return the request with the estimate of its program, whose run time replaces the model's."""
    if found is None:
        return asked
    return replace(asked, program=found, targets=with_run_time(asked.targets, found))


def with_run_time(targets: tuple[TargetPrediction, ...], found: ProgramEstimate) -> tuple[TargetPrediction, ...]:
    """Return the targets with the run time of own runs or of the white box; unchanged where the history is used."""
    source = _SOURCES.get(found.estimator)
    if source is None or found.run_s is None:
        return targets
    # The model's probability to time out belongs to its own run time; risk_of derives it from the interval.
    replaced = {WALLTIME} if found.coverage is None else {WALLTIME, "timeout"}
    others = tuple(one for one in targets if one.target not in replaced)
    return (*others, TargetPrediction(WALLTIME, source, found.runs, quantiles=_quantiles(found)))


def misfit(asked: PlanRequest) -> list[str]:
    """Return why no GPU of the request can hold the program, nothing where one can or where it is unknown."""
    found = asked.program
    if found is None or found.fits != "does not fit" or found.memory_low_b is None or found.capacity_b is None:
        return []
    kind = asked.request.gpu_type or found.gpu
    has = f"{kind} has {format_size(found.capacity_b)}"
    if asked.request.gpus > 1:
        has = f"{asked.request.gpus} GPUs of {kind} have {format_size(found.capacity_b * asked.request.gpus)}"
    return [f"the program needs at least {format_size(found.memory_low_b)} of GPU memory, {has}"]


def end_of(asked: PlanRequest, start: Interval, end: Interval) -> Interval:
    """Return when the job ends: the queue's answer, or its start and the run time of the program's own estimator."""
    target = asked.target(WALLTIME)
    if asked.program is None or target is None or target.source not in _SOURCES:
        return end
    limit = asked.request.time_limit_s
    runs = [quantile(target.quantiles, level) or 0.0 for level in _LEVELS]
    low, middle, high = (int(run if limit is None else min(run, limit)) for run in runs)
    return Interval(p10=start.p10 + low, p50=start.p50 + middle, p90=start.p90 + high)


def _quantiles(found: ProgramEstimate) -> dict[str, float]:
    """Return the median, and the ends of the interval at the levels that follow from its coverage."""
    known = {"0.5": found.run_s or 0.0}
    if found.run_low_s is not None and found.run_high_s is not None and found.coverage is not None:
        outside = (1 - found.coverage) / 2
        known[f"{outside:.4g}"], known[f"{1 - outside:.4g}"] = found.run_low_s, found.run_high_s
    return dict(sorted(known.items(), key=lambda item: float(item[0])))
