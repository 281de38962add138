"""GPUs whose mean use in accounting is low over the entire run: small kernels, slow input, a small problem.

Thresholds. The rule of under-use (underused_below_pct) for the mean of each GPU, in a run of run_min_s (one minute) or
more. Only of runs with GPUs of which nothing but a mean is known: an agent's hours give findings that name the cause. A
mean is no hours, so that no time of these GPUs counts as waste.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.units import say_percent
from gpuwaste.ledger.finding import Finding, Fix, plural
from gpuwaste.ledger.findings.one_gpu_of_many import applies
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings

CAUSE: Final = "low mean use"
_FIXES: Final = (
    Fix("run several such tasks on one GPU, or request a shard or a MIG slice, if the cluster has them"),
    Fix("give the GPU more work at a time: larger batches, faster input (watch nvidia-smi in the next run)"),
)


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each run whose GPUs all have a low mean in accounting."""
    for ledger in jobs:
        means = [d.mean_pct for d in ledger.devices]
        known = [mean for mean in means if mean is not None and mean < settings.underused_below_pct]
        if not known or len(known) < len(means) or not any(d.use.told_pct for d in ledger.devices):
            continue
        if ledger.job.interactive or ledger.ran_ms < settings.run_min_s * 1000 or applies(ledger, settings):
            continue
        mean = sum(known) / len(known)
        yield Finding(
            kind="low_use",
            title=f"mean use {say_percent(mean / 100)} of {plural(len(known))}; this time is not counted as waste",
            runs=(ledger.job.run_key,),
            evidence={"gpus": len(known), "mean_pct": mean, "memory_share": _memory(ledger)},
            fixes=_FIXES,
            wasted_gpu_s=0.0,
            provisional=ledger.running,
        )


def _memory(ledger: JobLedger) -> float | None:
    """Return the largest share of a GPU's memory in use, None where it is not known."""
    return max((d.use.memory_ratio for d in ledger.devices if d.use.memory_ratio is not None), default=None)
