"""A job holds CPUs that it does not use, and jobs that wait cannot use the GPUs beside it.

Thresholds. The CPUs that it kept busy on average, times 1.5, and at least one for each GPU, are at most half of those
that it held.
"""

import math
from collections.abc import Iterator
from typing import Final

from gpuwaste.core.units import HOUR_S, say_hours
from gpuwaste.ledger.balance.findings._kept import KeptGpus
from gpuwaste.ledger.balance.types import BalanceClass
from gpuwaste.ledger.finding import Finding, Fix, cpus_per_task, plural

CAUSE: Final = "CPUs keep GPUs from others"
CLASS: Final = BalanceClass.FREE_CPUS
HEADROOM: Final = 1.5
GAIN: Final = 0.5


def find(job: KeptGpus) -> Iterator[Finding]:
    """Yield a finding where half of the CPUs or fewer would have been enough."""
    busy, held = job.busy_cpus, job.job.cpus
    if busy is None or not held:
        return
    enough = max(math.ceil(busy * HEADROOM), job.job.gpus or 1)
    if enough > GAIN * held:
        return
    each = cpus_per_task(job.job)
    lines = (f"#SBATCH --cpus-per-task={math.ceil(enough * each / held)}",) if each and held % each == 0 else ()
    yield job.finding(
        "cpus_strand_gpus",
        f"jobs that waited could not use {say_hours(job.gpu_s / HOUR_S)} GPU-hours on {job.nodes}: it held "
        f"{plural(held, 'CPU')} with {plural(job.job.gpus or 0)} and kept {busy:.1f} of them busy",
        {"cpus": held, "busy_cpus": busy, "enough_cpus": enough},
        Fix(f"request {plural(enough, 'CPU')} instead of {held}", lines),
    )
