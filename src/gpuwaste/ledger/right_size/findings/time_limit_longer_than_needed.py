"""The last runs of such jobs ended long before their time limit.

A shorter job starts earlier, since the scheduler can fit it before pending jobs that need more (backfill).

Thresholds. At least 5 completed runs, the last 20 at most, none of which reached its limit. The bound of the run time,
which the next run exceeds with a chance of at most 1 %, rounded up to a time that people write, is at most 80 % of the
limit.
"""

from collections.abc import Iterator
from typing import Final

from gpuwaste.core.units import format_duration, say_duration
from gpuwaste.ledger.finding import Finding, Fix, plural
from gpuwaste.ledger.right_size.findings._finding import at_most, finding
from gpuwaste.ledger.right_size.such_jobs import SizedSite, SuchJobs
from gpuwaste.slurm.submit.friendly_amounts import friendly_s

CAUSE: Final = "time limit longer than needed"
GAIN: Final = 0.8


def find(jobs: SuchJobs, site: SizedSite) -> Iterator[Finding]:
    """Yield a finding where a clearly shorter limit would be enough."""
    need, job = site.need(jobs, "time"), jobs.newest
    bound = None if need is None else need.bound()
    if need is None or bound is None or not job.time_limit_s:
        return
    enough = friendly_s(bound)
    if enough > GAIN * job.time_limit_s:
        return
    chance = need.chance(enough)
    yield finding(
        "time_limit_longer_than_needed",
        jobs,
        f"a limit of {say_duration(enough)} instead of {say_duration(job.time_limit_s)} would be enough: the last "
        f"{plural(need.runs, 'run')} took at most {say_duration(need.highest)}; {at_most(chance)}",
        {
            "runs": need.runs,
            "longest_s": need.highest,
            "limit_s": job.time_limit_s,
            "enough_s": enough,
            "exceeded_ratio": chance,
        },
        (Fix("request a shorter time limit", (f"#SBATCH --time={format_duration(enough)}",)),),
    )
