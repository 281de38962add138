"""Sets --time-min where the policy has a table [time_min], so that Slurm may start the job earlier with less time.

The value is the larger one of two: `ratio` of the time limit, and the highest quantile of the run time, 0.9 or more
(job history: the longest of at least three jobs). The time limit itself is never changed. Nothing is set in shadow
mode, for a job that is rejected or modified, with `--test-only`, or if it would not be shorter.
"""

import math
from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.core.units import MINUTE_S

ORDER: Final = 600
LEAST_LEVEL: Final = 0.9
LEAST_BASIS: Final = 3


def apply(case: PolicyCase) -> None:
    """Set the case's time_min_s, in full minutes."""
    table, facts, limit = case.policy.time_min, case.facts, case.facts.request.time_limit_s
    if table is None or not limit or case.policy.mode in {"off", "shadow"} or case.action == "reject":
        return
    if facts.op != "submit" or facts.test_only or facts.stale or case.held == "floor" or case.campaign:
        return
    longest = _longest_s(case)
    if longest is None:
        return
    least = MINUTE_S * math.ceil(max(table.ratio.value * limit, longest) / MINUTE_S)
    if 0 < least < limit:
        case.time_min_s = least
        case.step("time_min", f"time_min is set to {least // MINUTE_S} of {limit // MINUTE_S} minutes")


def _longest_s(case: PolicyCase) -> float | None:
    for expectation in case.facts.expected:
        if expectation.target == "walltime" and expectation.quantiles:
            level, value = max((float(level), value) for level, value in expectation.quantiles.items())
            history = expectation.source == "history"
            enough = expectation.basis >= LEAST_BASIS if history else level >= LEAST_LEVEL
            return value if enough and math.isfinite(value) else None
    return None
