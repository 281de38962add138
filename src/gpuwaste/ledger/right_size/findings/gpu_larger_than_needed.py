"""The last runs of such jobs would have fitted a smaller GPU type or a MIG slice of the site, for which jobs wait less.

Thresholds. At least 5 completed runs whose GPU memory and use are known, the last 20 at most. The chance that the
next run needs more memory is at most 1 %: split conformal prediction from the growths of all such jobs of the
cluster, 99 or more (`ledger/right_size/rule.py`). The slowdown is at most a quarter: busy time gets longer where the
busy part of the GPU exceeds the smaller one, by its multiprocessors (DCGM, GPM), else by its power, else by all of
it, with arithmetic and bandwidth of the data sheets. Both sizes were allocated at least 20 times for as many GPUs in
the last 30 days, and jobs waited less for the smaller one, at the median or the 90th percentile and longer at
neither. A program that reserves all memory at its start (JAX, TensorFlow by default) has a high peak and gets no
finding. Of runs of which no agent reported, the figures that jobstats has in accounting count (`source`).
"""

import re
from collections.abc import Iterator
from typing import Final

from gpuwaste.core.units import format_size, say_duration, say_percent
from gpuwaste.ledger.finding import Finding, Fix, gpu_request, plural
from gpuwaste.ledger.right_size.findings._finding import at_most, finding
from gpuwaste.ledger.right_size.rule import WINDOW
from gpuwaste.ledger.right_size.smaller_gpu import SmallerGpu, smaller_gpus
from gpuwaste.ledger.right_size.such_jobs import SizedSite, SuchJobs
from gpuwaste.slurm.submit.gpu_items import GpuRequest

CAUSE: Final = "GPU larger than needed"
ALTERNATIVES: Final = 2
_WORD: Final = re.compile(r"[A-Za-z0-9_.\-]{1,64}", re.ASCII)  # needs no shell quoting
_NO_LOSS: Final = 0.01


def find(jobs: SuchJobs, site: SizedSite) -> Iterator[Finding]:
    """Yield a finding where a smaller GPU fits."""
    fitting = [one for one in smaller_gpus(jobs, site) if _WORD.fullmatch(one.size.name)]
    if not fitting:
        return
    first = fitting[0]
    source = {"source": "jobstats"} if any(run.by_jobstats for run in jobs.completed[-WINDOW:]) else {}
    need, now = first.need, site.sizes[jobs.newest.gpu_type]
    yield finding(
        "gpu_larger_than_needed",
        jobs,
        f"{first.size.name} would be enough instead of {now.name}: the last {plural(need.runs, 'run')} used at most "
        f"{format_size(need.highest)} of GPU memory; {at_most(first.chance)}",
        {
            "runs": need.runs,
            "gpu_type": first.size.name,
            "used_b": round(need.highest),
            "bound_b": round(need.bound() or 0) or None,
            "size_b": first.size.memory_b,
            "exceeded_ratio": first.chance,
            "slowdown_ratio": first.slowdown - 1,
            "wait_s": first.wait_now.p50_s,
            "wait_there_s": first.wait.p50_s,
            "freed_gpu_s": sum(run.ran_s * (run.gpus) for run in jobs.completed[-need.runs :])
            * (1 - first.size.part if first.size.mig and first.size.device == now.device else 1),
            **source,
        },
        tuple(_fix(jobs, one) for one in fitting[:ALTERNATIVES]),
    )


def _fix(jobs: SuchJobs, one: SmallerGpu) -> Fix:
    return Fix(f"request {one.size.name} ({_said(one)})", lines_for(jobs, one))


def _said(one: SmallerGpu) -> str:
    lost = one.slowdown - 1
    slower = "no longer run time expected" if lost < _NO_LOSS else f"run time up to {say_percent(lost)} longer"
    double = "; much slower in double precision" if one.slow_double else ""
    waits = f"median wait {say_duration(one.wait.p50_s)} instead of {say_duration(one.wait_now.p50_s)}"
    return f"{format_size(one.size.memory_b)}; {slower}{double}; {waits}"


def lines_for(jobs: SuchJobs, one: SmallerGpu) -> tuple[str, ...]:
    """Return the lines that request it, with the option that the newest run used."""
    job = jobs.newest
    asked, gpus = gpu_request(job), job.gpus or 1
    line = GpuRequest(asked.option, one.size.name, asked.tasks).line(gpus, -(-gpus // (job.n_nodes or 1)))
    there = one.wait.most_in
    elsewhere = job.partition not in one.wait.partitions and _WORD.fullmatch(there)
    return (line, f"#SBATCH --partition={there}") if elsewhere else (line,)
