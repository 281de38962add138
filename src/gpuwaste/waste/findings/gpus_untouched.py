"""GPUs that no process of the job ever touched: the batch script asks for more than the program uses.

Thresholds. A run of run_min_s (one minute), since a program may load data before it opens its GPU. A run whose work
is all on one GPU of several is reported by one_gpu_of_many, not here.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.finding import Finding
from gpuwaste.waste.findings._support import ask_for, plural, spread_over
from gpuwaste.waste.findings.one_gpu_of_many import applies
from gpuwaste.waste.ledger import DeviceLedger, JobLedger
from gpuwaste.waste.ledger_settings import LedgerSettings

CAUSE: Final = "GPUs never touched"


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each run with GPUs that were never touched."""
    for ledger in jobs:
        never = [d for d in ledger.devices if _never_touched(d, settings)]
        if not never or ledger.ran_ms < settings.run_min_s * 1000 or applies(ledger, settings):
            continue
        used = [d for d in ledger.devices if not _never_touched(d, settings)]
        wasted_s = sum(d.wasted_ms for d in never) / 1000
        yield Finding(
            kind="gpus_untouched",
            title=_title(len(never), len(ledger.devices), whole_node=ledger.whole_node),
            runs=(ledger.job.run_key,),
            evidence={
                "gpus": len(ledger.devices),
                "untouched_gpus": len(never),
                "uuids": [d.use.gpu_uuid for d in never],
                "wasted_share": wasted_s * 1000 / ledger.alloc_ms,
            },
            fix=_fix(ledger, used),
            wasted_gpu_s=wasted_s,
            provisional=ledger.running,
        )


def _never_touched(device: DeviceLedger, settings: LedgerSettings) -> bool:
    return device.untouched and device.due_coverage >= settings.min_coverage


def _title(never: int, gpus: int, *, whole_node: bool) -> str:
    if never == gpus:
        what = f"no process ever used its {plural(gpus)}"
        return f"{what}: run on them, or use a partition without GPUs" if whole_node else f"{what}: drop the request"
    what = f"{never} of {plural(gpus)} never used by any process"
    return f"{what}: run on all of them" if whole_node else f"{what}: ask for {gpus - never}"


def _fix(ledger: JobLedger, used: Sequence[DeviceLedger]) -> tuple[str, ...]:
    """Return the lines: fewer GPUs, none, or (where the node comes whole) one process for each GPU."""
    if ledger.whole_node:
        return (spread_over(ledger),)
    return ask_for(ledger, used)
