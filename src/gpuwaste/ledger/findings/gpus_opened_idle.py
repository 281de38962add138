"""GPUs that a process opened and never computed on: a CPU build of a framework, or a model left on the CPU.

Thresholds. Idle runs of finding_min_s (ten minutes) on the device and not one busy second, since long start-ups open
the GPU first. Memory-resident GPUs, interactive jobs and the idle part of a run whose work is all on one GPU have
separate findings.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.ledger.finding import Finding, Fix, ask_for, judgeable, needed, only_opened, plural, use_all
from gpuwaste.ledger.findings.one_gpu_of_many import applies
from gpuwaste.ledger.ledger import DeviceLedger, JobLedger, LedgerSettings

CAUSE: Final = "GPUs opened, then idle"


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each batch run with GPUs that were opened and stayed at 0 %."""
    for ledger in judgeable(jobs, settings, settings.finding_min_s):
        if ledger.job.interactive or applies(ledger, settings):
            continue
        opened = [d for d in ledger.devices if only_opened(d, settings)]
        if not opened:
            continue
        wasted_s = sum(d.wasted_ms for d in opened) / 1000
        yield Finding(
            kind="gpus_opened_idle",
            title=_title(opened),
            runs=(ledger.job.run_key,),
            evidence={
                "gpus": len(ledger.devices),
                "opened_gpus": len(opened),
                "uuids": [d.use.gpu_uuid for d in opened],
                "wasted_share": wasted_s * 1000 / ledger.alloc_ms,
            },
            fixes=_fixes(ledger, needed(ledger, settings)),
            wasted_gpu_s=wasted_s,
            provisional=ledger.running,
        )


def _title(opened: Sequence[DeviceLedger]) -> str:
    gpus = plural(len(opened))
    told = any(d.use.accounted for d in opened)  # accounting knows of no process
    what = f"{gpus} stayed at 0 %" if told else f"a process opened {gpus} and never computed there"
    return f"{what}: does the program run on the CPU?"


def _fixes(ledger: JobLedger, used: Sequence[DeviceLedger]) -> tuple[Fix, ...]:
    """Return a test of the framework where nothing computed, else to use all GPUs or to request those in use."""
    if used:
        return (use_all(ledger),) if ledger.whole_node else (ask_for(ledger, used), use_all(ledger))
    check = Fix("compute on the GPU: check in the job that the framework finds it (PyTorch: torch.cuda.is_available())")
    return (check,) if ledger.whole_node else (check, ask_for(ledger, ()))
