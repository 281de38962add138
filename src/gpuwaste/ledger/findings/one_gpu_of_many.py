"""All work on one GPU of several: the framework, or the script, does not spread it.

Thresholds. One GPU must have 99 % of the job's activity, since an unused context on another GPU causes a short
blip; the job must have run for run_min_s (one minute), since many frameworks start on one GPU and spread later.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.ledger.finding import Finding, ask_for, judgeable, memory_resident, plural, use_all
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings

CAUSE: Final = "one GPU of many"
ACTIVITY_ON_ONE: Final = 0.99
LIMITS: Final = {"on_one_gpu_ratio": ACTIVITY_ON_ONE}


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each run of two and more GPUs whose work is on one of them."""
    for ledger in jobs:
        if not applies(ledger, settings):
            continue
        devices = sorted(ledger.devices, key=lambda d: -d.use.pct_ms)
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
    activity = [d.use.pct_ms for d in ledger.devices]
    if len(activity) < 2 or not 0 < max(activity) >= ACTIVITY_ON_ONE * sum(activity):  # noqa: PLR2004 several
        return False
    devices = sorted(ledger.devices, key=lambda d: -d.use.pct_ms)
    return any(judgeable([ledger], settings, settings.run_min_s)) and not any(
        memory_resident(d, settings) for d in devices[1:]
    )
