"""The last runs of such jobs kept far fewer CPUs busy than they requested.

Thresholds. At least 5 completed runs on one node with the CPU time of accounting, the last 20 at most. The bound of the
mean number of busy CPUs, which the next run exceeds with a chance of at most 1 %, times 1.5 for phases that need more
than the mean, is at most half of the requested CPUs. A partition that allocates entire nodes gets no finding.
"""

import math
from collections.abc import Iterator
from typing import Final

from gpuwaste.ledger.finding import Finding, Fix, cpus_per_task, plural
from gpuwaste.ledger.right_size.findings._finding import at_most, finding
from gpuwaste.ledger.right_size.such_jobs import SizedSite, SuchJobs

CAUSE: Final = "more CPUs than needed"
HEADROOM: Final = 1.5
GAIN: Final = 0.5


def find(jobs: SuchJobs, site: SizedSite) -> Iterator[Finding]:
    """Yield a finding where half of the CPUs or fewer would be enough."""
    need, job = site.need(jobs, "cpus"), jobs.newest
    bound = None if need is None else need.bound()
    if need is None or bound is None or not job.cpus or job.n_nodes != 1 or jobs.whole_node:
        return
    enough = max(math.ceil(bound * HEADROOM), job.gpus or 1)
    if enough > GAIN * job.cpus:
        return
    chance = need.chance(enough)
    yield finding(
        "cpus_more_than_needed",
        jobs,
        f"{enough} of {plural(job.cpus, 'CPU')} would be enough: the last {plural(need.runs, 'run')} kept at most "
        f"{need.highest:.1f} busy on average; {at_most(chance)}",
        {
            "runs": need.runs,
            "cpus": job.cpus,
            "busy_cpus": need.highest,
            "enough_cpus": enough,
            "exceeded_ratio": chance,
        },
        (_fix(jobs, enough),),
    )


def _fix(jobs: SuchJobs, enough: int) -> Fix:
    """Return the smaller request; a line only where the number of tasks is known from the submit line."""
    job = jobs.newest
    each = cpus_per_task(job)
    text = f"request {plural(enough, 'CPU')} instead of {job.cpus}"
    if not each or not job.cpus or job.cpus % each:
        return Fix(text)
    return Fix(
        f"{text} (change it on the command line: it overrides the script)",
        (f"#SBATCH --cpus-per-task={math.ceil(enough * each / job.cpus)}",),
    )
