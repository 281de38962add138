"""The last runs of such jobs used far less host memory than they requested.

Thresholds. At least 5 completed runs on one node whose memory the agent read, the last 20 at most, none of which
ended out of memory. The bound that the next run exceeds with a chance of at most 1 %, times 1.2 for peaks between two
samples, rounded up to a size that people write, is at most 70 % of the request. A partition that allocates entire
nodes gets no finding.
"""

from collections.abc import Iterator
from typing import Final

from gpuwaste.core.units import format_size
from gpuwaste.ledger.finding import Finding, Fix, plural
from gpuwaste.ledger.right_size.findings._finding import at_most, finding
from gpuwaste.ledger.right_size.such_jobs import SizedSite, SuchJobs
from gpuwaste.slurm.submit.friendly_amounts import friendly_gib

CAUSE: Final = "more memory than needed"
HEADROOM: Final = 1.2
GAIN: Final = 0.7
_GIB: Final = 1 << 30


def find(jobs: SuchJobs, site: SizedSite) -> Iterator[Finding]:
    """Yield a finding where clearly less memory would be enough."""
    need, job = site.need(jobs, "memory"), jobs.newest
    bound = None if need is None else need.bound()
    if need is None or bound is None or not job.mem_req_b or job.n_nodes != 1 or jobs.whole_node:
        return
    enough = friendly_gib(bound * HEADROOM)
    if enough * _GIB > GAIN * job.mem_req_b:
        return
    chance = need.chance(enough * _GIB)
    yield finding(
        "memory_more_than_needed",
        jobs,
        f"{enough} GiB of {format_size(job.mem_req_b)} memory would be enough: the last {plural(need.runs, 'run')} "
        f"used at most {format_size(need.highest)}; {at_most(chance)}",
        {
            "runs": need.runs,
            "used_b": round(need.highest),
            "requested_b": job.mem_req_b,
            "enough_b": enough * _GIB,
            "exceeded_ratio": chance,
        },
        (Fix("request less memory, in place of the job's own memory option", (f"#SBATCH --mem={enough}G",)),),
    )
