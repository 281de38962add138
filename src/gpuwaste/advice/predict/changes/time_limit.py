"""A shorter time limit: the highest predicted quantile of the run time, rounded up to a time that people write.

A shorter job starts earlier, since the scheduler can fit it before pending jobs that need more (backfill).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gpuwaste.advice.predict.changes import ChangeProposal, safe, share_text
from gpuwaste.advice.predict.prediction_types import TargetPrediction
from gpuwaste.core.units import format_duration, say_duration
from gpuwaste.slurm.submit.friendly_amounts import friendly_s
from gpuwaste.slurm.submit.job_request import JobRequest

LEAST: Final = 0.85  # a quantile below this would let the new limit end too many jobs
GAIN: Final = 0.8  # a new limit above this share of the old one changes too little


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
