"""Each target's prediction is compared with the policy's thresholds: `warn` gives a warning, `reject` a reject.

`failure`, `timeout` and `failure_or_cancel` are probabilities. The value of `gpus` is the higher one of two: the
probability that the GPUs stay unused, and the confidence that the suggested smaller number of GPUs is enough.
`walltime` and `memory` are the confidence that the suggested smaller amount is enough; without a suggestion they have
no effect. The confidence is the highest quantile below the requested amount; for job history only, it is 1. Job
history is used from `basis` jobs on.

`"model"` is the bundle's own operating point. Values without one (job history, confidences) are compared with 0.75 for
a warning and 0.95 for a reject.
"""

from collections.abc import Iterator
from typing import Final

from gpuwaste.advice.policy.policy_case import Expectation, PolicyCase, Suggestion, Trigger
from gpuwaste.advice.policy.policy_file import GPUS, QUANTITIES, TargetRule, Threshold
from gpuwaste.core.units import say_percent
from gpuwaste.jobs.verdict import Action
from gpuwaste.slurm.submit.job_request import JobRequest

ORDER: Final = 200
NO_POINT_WARN: Final = 0.75
NO_POINT_REJECT: Final = 0.95
_HISTORY: Final = "history"
_LEVELS: Final = {"": 0, "warn": 1, "reject": 2}


def apply(case: PolicyCase) -> None:
    """Note a trigger for each target that reaches a threshold."""
    for target, rule in case.policy.targets.items():
        best: Trigger | None = None
        for found in _numbers(case, target):
            if found.expectation.source == _HISTORY and found.expectation.basis < rule.basis:
                jobs = found.expectation.basis
                case.step("thresholds", f"{target}: history of {jobs} jobs, at least {rule.basis} are needed")
                continue
            found.action = _action(rule, found)
            case.step("thresholds", f"{target}: {say_percent(found.value)} {_said(rule, found)}")
            if found.action != "pass" and (best is None or _strength(found) > _strength(best)):
                best = found
        if best is not None:
            case.triggers.append(best)
    case.weigh()
    if not case.triggers:
        case.step("thresholds", "no target reaches a threshold")


def _numbers(case: PolicyCase, target: str) -> Iterator[Trigger]:
    """Yield the known values of the policy's targets, as triggers without an action yet."""
    facts = case.facts
    for expectation in facts.expected:
        name, p = expectation.target, expectation.p
        if p is not None and (name == target or (target == GPUS and name == "gpu_underused")):
            yield Trigger(target, p, "pass", expectation, _suggestion(case, GPUS) if target == GPUS else None)
        elif expectation.quantiles and name == ("gpus_needed" if target == GPUS else target):
            suggestion = _suggestion(case, QUANTITIES.get(target, GPUS))
            sure = _sure(expectation, _asked(name, facts.request))
            if suggestion is not None and sure:
                yield Trigger(target, sure, "pass", expectation, suggestion)


def _suggestion(case: PolicyCase, kind: str) -> Suggestion | None:
    return next((found for found in case.facts.suggestions if found.kind == kind), None)


def _asked(name: str, request: JobRequest) -> float | None:
    return {"walltime": request.time_limit_s, "memory": request.mem_b, "gpus_needed": request.gpus}.get(name)


def _sure(expectation: Expectation, asked: float | None) -> float:
    """Return the highest level whose quantile is below the requested amount, 1 for history, 0 for none."""
    below = [float(level) for level, value in expectation.quantiles.items() if asked is not None and value < asked]
    if not below:
        return 0.0
    return 1.0 if expectation.source == _HISTORY else max(below)


def _action(rule: TargetRule, found: Trigger) -> Action:
    if _reaches(rule.reject, found, "reject", NO_POINT_REJECT):
        return "reject"
    return "warn" if _reaches(rule.warn, found, "warn", NO_POINT_WARN) else "pass"


def _reaches(threshold: Threshold, found: Trigger, point: str, without: float) -> bool:
    if threshold.p is not None:
        return found.value >= threshold.p
    if not threshold.model:
        return False
    expectation = found.expectation
    if expectation.source == _HISTORY or expectation.p is None:
        return found.value >= without
    return _LEVELS.get(expectation.level, 0) >= _LEVELS[point]


def _said(rule: TargetRule, found: Trigger) -> str:
    threshold = rule.reject if found.action == "reject" else rule.warn
    if found.action == "pass":
        return f"is below the thresholds: warn {_point(rule.warn)}, reject {_point(rule.reject)}"
    return f"reaches the {found.action} threshold, {_point(threshold)} ({found.expectation.source})"


def _point(threshold: Threshold) -> str:
    """Return a threshold in percent; that of a model, and none, by their words."""
    return str(threshold) if threshold.p is None else say_percent(threshold.p)


def _strength(found: Trigger) -> tuple[bool, float]:
    return found.action == "reject", found.value
