"""A shorter time limit: the highest predicted quantile of the run time, rounded up to a time that people write.

A shorter job starts earlier, since the scheduler can fit it before pending jobs that need more (backfill).
"""

import bisect
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gpuwaste.advice.predict.changes import ChangeProposal, safe, share_text
from gpuwaste.advice.predict.prediction_types import TargetPrediction
from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S, format_duration, say_duration
from gpuwaste.slurm.submit.job_request import JobRequest

LEAST: Final = 0.85  # a quantile below this would let the new limit end too many jobs
GAIN: Final = 0.8  # a new limit above this share of the old one changes too little
_FRIENDLY_S: Final = (
    *(MINUTE_S * m for m in (5, 10, 15, 20, 30, 40, 45, 60, 90)),
    *(HOUR_S * h for h in (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24)),
)


def propose(request: JobRequest, said: Mapping[str, TargetPrediction]) -> ChangeProposal | None:
    """Return the shorter limit where it is a clear gain."""
    limit, walltime = request.time_limit_s, said.get("walltime")
    found = safe(walltime, LEAST)
    if limit is None or walltime is None or found is None:
        return None
    timeout = said.get("timeout")
    if walltime.source == "history" and (timeout is None or timeout.p):
        return None  # a run that its limit ended would have run longer
    level, longest_s = found
    shorter = friendly_s(longest_s)
    if shorter > GAIN * limit:
        return None
    ran = "ran" if walltime.source == "history" else "end within"
    return ChangeProposal(
        request=replace(request, time_limit_s=shorter),
        option=f"#SBATCH --time={format_duration(shorter)}",
        text=f"{share_text(level, walltime)} {ran} {say_duration(longest_s)}; you requested {say_duration(limit)}",
        before={"time_limit_s": float(limit)},
        after={"time_limit_s": float(shorter)},
    )


def friendly_s(seconds: float) -> int:
    """Round up to a time that people write: 5, 10, 15 min, ..., 24 h, then half days."""
    place = bisect.bisect_left(_FRIENDLY_S, seconds)
    if place < len(_FRIENDLY_S):
        return _FRIENDLY_S[place]
    return math.ceil(seconds / (DAY_S // 2)) * (DAY_S // 2)
