"""GPUs that a process opened and never computed on: a CPU build of a framework, or a model left on the CPU.

Thresholds. Idle runs of finding_min_s (ten minutes) on the device and not one busy second, since long start-ups open
the GPU first. Memory-resident GPUs, interactive jobs and the idle part of a run whose work is all on one GPU have
separate findings.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.finding import Finding
from gpuwaste.waste.findings._support import ask_for, judgeable, memory_resident, plural, spread_over
from gpuwaste.waste.findings.one_gpu_of_many import applies
from gpuwaste.waste.ledger import DeviceLedger, JobLedger
from gpuwaste.waste.ledger_settings import LedgerSettings

CAUSE: Final = "GPUs opened, then idle"


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each batch run with GPUs that were opened and stayed at 0 %."""
    for ledger in judgeable(jobs, settings, settings.finding_min_s):
        if ledger.job.interactive or applies(ledger, settings):
            continue
        opened = [d for d in ledger.devices if _only_opened(d, settings)]
        if not opened:
            continue
        wasted_s = sum(d.wasted_ms for d in opened) / 1000
        yield Finding(
            kind="gpus_opened_idle",
            title=f"a process opened {plural(len(opened))} and never computed there: does the program run on the CPU?",
            runs=(ledger.job.run_key,),
            evidence={
                "gpus": len(ledger.devices),
                "opened_gpus": len(opened),
                "uuids": [d.use.gpu_uuid for d in opened],
                "wasted_share": wasted_s * 1000 / ledger.alloc_ms,
            },
            fix=_fix(ledger, [d for d in ledger.devices if d.use.pct_ms]),
            wasted_gpu_s=wasted_s,
            provisional=ledger.running,
        )


def _only_opened(device: DeviceLedger, settings: LedgerSettings) -> bool:
    idle = device.use.proc_seen and not device.use.pct_ms and device.wasted_ms >= settings.finding_min_s * 1000
    return idle and not memory_resident(device, settings)


def _fix(ledger: JobLedger, busy: Sequence[DeviceLedger]) -> tuple[str, ...]:
    """Return a test of the framework where nothing computed, else the lines that use or ask for what is needed."""
    if busy:
        return (spread_over(ledger),) if ledger.whole_node else ask_for(ledger, busy)
    return ('model.to("cuda")', "python -c 'import torch; print(torch.cuda.is_available())'    # in the job")
