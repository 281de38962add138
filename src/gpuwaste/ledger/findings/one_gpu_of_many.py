"""All work on one GPU of several: the framework, or the script, does not spread it.

Thresholds. One GPU must have 99 % of the job's activity, since an unused context on another GPU causes a short
blip; the job must have run for run_min_s (one minute), since many frameworks start on one GPU and spread later.
Where the source is jobstats, the mean of one GPU must be above 0 % and that of all others exactly 0 %.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.ledger.finding import Finding, ask_for, judgeable, memory_resident, plural, use_all
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings, Level

CAUSE: Final = "one GPU of many"
ACTIVITY_ON_ONE: Final = 0.99
LIMITS: Final = {"on_one_gpu_ratio": ACTIVITY_ON_ONE}


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each run of two and more GPUs whose work is on one of them."""
    for ledger in jobs:
        if not applies(ledger, settings):
            continue
        devices = sorted(ledger.devices, key=lambda d: -(d.mean_pct or 0.0))
        idle = devices[1:]
        wasted_s = sum(d.wasted_ms for d in idle) / 1000
        fewer = () if ledger.whole_node else (ask_for(ledger, devices[:1]),)
        yield Finding(
            kind="one_gpu_of_many",
            title=f"all work on one GPU, {len(idle)} of {plural(len(devices))} idle: "
            + ("run on all of them" if ledger.whole_node else "request one, or run on all of them"),
            runs=(ledger.job.run_key,),
            evidence={
                "gpus": len(devices),
                "idle_gpus": len(idle),
                "without_process": sum(not d.use.proc_seen for d in idle),
                "busy_gpu": devices[0].use.gpu_uuid,
                "busy_mean_pct": devices[0].mean_pct,
                "wasted_share": wasted_s * 1000 / ledger.alloc_ms,
            },
            fixes=(*fewer, use_all(ledger)),
            wasted_gpu_s=wasted_s,
            provisional=ledger.running,
        )


def applies(ledger: JobLedger, settings: LedgerSettings) -> bool:
    """Return whether a run of several GPUs is known well enough and has all its activity on one of them."""
    if len(ledger.devices) < 2:  # noqa: PLR2004 several
        return False
    if any(d.use.told_pct for d in ledger.devices):
        return _told_on_one(ledger, settings)
    activity = [d.use.pct_ms for d in ledger.devices]
    if not 0 < max(activity) >= ACTIVITY_ON_ONE * sum(activity):
        return False
    devices = sorted(ledger.devices, key=lambda d: -d.use.pct_ms)
    return any(judgeable([ledger], settings, settings.run_min_s)) and not any(
        memory_resident(d, settings) for d in devices[1:]
    )


def _told_on_one(ledger: JobLedger, settings: LedgerSettings) -> bool:
    """Return whether of GPUs with a mean alone one was used, and the others stayed at 0 %."""
    idle = [d for d in ledger.devices if d.level == Level.NONE]
    return (
        len(idle) == len(ledger.devices) - 1
        and ledger.ran_ms >= settings.run_min_s * 1000
        and not any(memory_resident(d, settings) for d in idle)
    )
