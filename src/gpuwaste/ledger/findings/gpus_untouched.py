"""GPUs that no process of the job ever touched: the batch script requests more than the program uses.

Thresholds. A run of run_min_s (one minute), since a program may load data before it opens its GPU. Where the source is
jobstats: 0 % at every reading, and at most 1 % of the GPU memory in use. A run whose work is all on one GPU of several
is reported by one_gpu_of_many, not here.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.ledger.finding import Finding, Fix, ask_for, needed, never_touched, plural, use_all
from gpuwaste.ledger.findings.one_gpu_of_many import applies
from gpuwaste.ledger.ledger import DeviceLedger, JobLedger, LedgerSettings

CAUSE: Final = "GPUs never touched"


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each run with GPUs that were never touched."""
    for ledger in jobs:
        never = [d for d in ledger.devices if never_touched(d, settings)]
        if not never or ledger.ran_ms < settings.run_min_s * 1000 or applies(ledger, settings):
            continue
        used = needed(ledger, settings)
        wasted_s = sum(d.wasted_ms for d in never) / 1000
        yield Finding(
            kind="gpus_untouched",
            title=_title(never, len(used), len(ledger.devices), whole_node=ledger.whole_node),
            runs=(ledger.job.run_key,),
            evidence={
                "gpus": len(ledger.devices),
                "untouched_gpus": len(never),
                "uuids": [d.use.gpu_uuid for d in never],
                "wasted_share": wasted_s * 1000 / ledger.alloc_ms,
            },
            fixes=_fixes(ledger, used),
            wasted_gpu_s=wasted_s,
            provisional=ledger.running,
        )


def _title(never: Sequence[DeviceLedger], used: int, gpus: int, *, whole_node: bool) -> str:
    told = any(d.use.accounted for d in never)  # accounting knows of no process
    if len(never) == gpus:
        what = f"its {plural(gpus)} stayed at 0 %" if told else f"no process used its {plural(gpus)}"
        return f"{what}: run on them, or use a partition without GPUs" if whole_node else f"{what}: drop the request"
    what = f"{len(never)} of {plural(gpus)} " + ("stayed at 0 %" if told else "used by no process")
    return f"{what}: run on all of them" if whole_node else f"{what}: request {used or 'none'}"


def _fixes(ledger: JobLedger, used: Sequence[DeviceLedger]) -> tuple[Fix, ...]:
    """Return fewer GPUs, or none; or a process for each, the only change that helps where full nodes are allocated."""
    return (use_all(ledger),) if ledger.whole_node else (ask_for(ledger, used), use_all(ledger))
