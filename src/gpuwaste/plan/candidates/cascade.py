"""A long job as several short ones, each after the previous one, with a signal in time to write a checkpoint.

Short jobs fit before jobs that wait for more (backfill). Whether a script saves its state on a signal and resumes from
it, only its user can know.
"""

import math
from collections.abc import Iterable
from typing import Final

from gpuwaste.core.units import HOUR_S, format_duration, say_duration
from gpuwaste.plan.candidates import RequestCandidate
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 9
LONG_S: Final = 8 * HOUR_S  # a shorter job gains little from a split
MOST_JOBS: Final = 6
SIGNAL_S: Final = 300
_PARTS_S: Final = (4 * HOUR_S, 8 * HOUR_S, 12 * HOUR_S, 24 * HOUR_S)


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return the split into the shortest parts that are few enough."""
    limit = asked.request.time_limit_s
    if limit is None or limit <= LONG_S or asked.request.is_array or "dependency" in asked.options:
        return
    part = next((part for part in _PARTS_S if math.ceil(limit / part) <= MOST_JOBS and part < limit), None)
    if part is None:
        return
    jobs = math.ceil(limit / part)
    signal = () if "signal" in asked.options else (f"--signal=B:USR1@{SIGNAL_S}",)
    yield RequestCandidate(
        "cascade",
        f"{jobs} jobs of {say_duration(part)}",
        (f"--time={format_duration(part)}", *signal),
        "each starts after the one before it; short jobs start earlier",
        jobs=jobs,
        needs="a script that writes a checkpoint on SIGUSR1, and starts from the last one",
    )
