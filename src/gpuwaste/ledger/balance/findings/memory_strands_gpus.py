"""A job holds memory that it does not use, and jobs that wait cannot use the GPUs beside it.

Thresholds. The peak of its steps in accounting (MaxRSS, times the tasks of a step), times 1.2 for peaks between two
samples, rounded up to a size that people write, is at most 70 % of what it held. A job of several nodes gets no line:
accounting has no peak by node.
"""

from collections.abc import Iterator
from typing import Final

from gpuwaste.core.units import HOUR_S, format_size, say_hours
from gpuwaste.ledger.balance.findings._kept import KeptGpus
from gpuwaste.ledger.balance.types import BalanceClass
from gpuwaste.ledger.finding import Finding, Fix, plural
from gpuwaste.slurm.submit.friendly_amounts import friendly_gib

CAUSE: Final = "memory keeps GPUs from others"
CLASS: Final = BalanceClass.FREE_MEMORY
HEADROOM: Final = 1.2
GAIN: Final = 0.7
_GIB: Final = 1 << 30


def find(job: KeptGpus) -> Iterator[Finding]:
    """Yield a finding where clearly less memory would have been enough."""
    if not job.used_b or not job.memory_b:
        return
    enough = friendly_gib(job.used_b * HEADROOM)
    if enough * _GIB > GAIN * job.memory_b:
        return
    lines = (f"#SBATCH --mem={enough}G",) if (job.job.n_nodes or 1) == 1 else ()
    yield job.finding(
        "memory_strands_gpus",
        f"jobs that waited could not use {say_hours(job.gpu_s / HOUR_S)} GPU-hours on {job.nodes}: it held "
        f"{format_size(job.memory_b)} memory with {plural(job.job.gpus or 0)} and used {format_size(job.used_b)}",
        {"requested_b": job.memory_b, "used_b": job.used_b, "enough_b": enough * _GIB},
        Fix("request less memory, in place of the job's own memory option", lines),
    )
