"""What a prediction says of a candidate: how long it runs, what it costs, and what may go wrong."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from gpuwaste.advice.predict.prediction_types import TargetPrediction
from gpuwaste.core.units import HOUR_S
from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.slurm.site.tres_weights import billing
from gpuwaste.slurm.submit.request import JobRequest, request_amounts

_LARGEST = "MAX_TRES"


@dataclass(frozen=True, slots=True)
class Cost:
    """Run time in seconds, GPU-hours and billing-hours; None is not known."""

    run_s: int | None
    gpu_hours: float | None
    billing_hours: float | None


def cost_of(asked: PlanRequest, jobs: int = 1) -> Cost:
    """Return what one run costs: the median run time that is expected, at most the limit; else the limit."""
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
    """Return the likeliest way to fail and its name: failure, timeout, out of memory; (None, "") for not known."""
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
    """Return the value at a level, on a line between the levels that are known; outside of them the nearest one's."""
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
    """Return the probability of more than `value`; beyond the highest level half of what is left."""
    points = sorted((float(at), each) for at, each in quantiles.items())
    if not points:
        return None
    if value < points[0][1]:
        return 1 - points[0][0] / 2
    for (low, first), (high, last) in pairwise(points):
        if first <= value < last:
            return 1 - (low + (high - low) * (value - first) / (last - first))
    return (1 - points[-1][0]) / 2
