"""GPUs that worked and then were idle until the end of the job: work without GPUs follows, or nothing ends the job.

Thresholds. The tail is finding_min_s (ten minutes) and a tenth of the run at least: shorter ones are checkpoints and
copying of results. All GPUs must have stopped: one that still works is needed. Interactive jobs belong to
idle_interactive, and of a run whose work is all on one GPU the others to one_gpu_of_many.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.units import say_duration
from gpuwaste.ledger.finding import Finding, Fix, judgeable, memory_resident, plural, processes
from gpuwaste.ledger.findings.one_gpu_of_many import applies
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings

CAUSE: Final = "idle at the end"
MIN_SHARE: Final = 0.1


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each batch run whose GPUs all stopped long before its end."""
    for ledger in judgeable(jobs, settings, settings.finding_min_s):
        if ledger.job.interactive:
            continue
        tail_ms = tail_of(ledger)
        if tail_ms < max(settings.finding_min_s * 1000, MIN_SHARE * ledger.ran_ms):
            continue
        if any(memory_resident(d, settings) for d in ledger.devices):
            continue
        worked = [d for d in ledger.devices if d.use.last_active_ms is not None]
        if applies(ledger, settings):
            worked = [max(worked, key=lambda d: d.use.pct_ms)]
        tail = say_duration(tail_ms / 1000)
        yield Finding(
            kind="idle_tail",
            title=f"{plural(len(worked))} idle for the last {tail} of the run: what ran then?",
            runs=(ledger.job.run_key,),
            evidence={"tail_s": tail_ms / 1000, "gpus": len(worked), "ran_s": ledger.ran_ms / 1000},
            fixes=_fixes(ledger, worked[0].use.node),
            wasted_gpu_s=sum(min(d.idle_run_ms, tail_ms) for d in worked) / 1000,
            provisional=ledger.running,
        )


def tail_of(ledger: JobLedger) -> int:
    """Return the milliseconds from the last activity of any GPU to the last sample, with all GPUs idle."""
    worked = [d for d in ledger.devices if d.use.last_active_ms is not None]
    if not worked:
        return 0
    last_ms = max(d.use.last_active_ms or 0 for d in worked)
    seen_ms = min(d.use.t1_ms for d in worked)
    return min(max(0, min(seen_ms, ledger.until_ms) - last_ms), *(d.idle_run_ms for d in worked))


def _fixes(ledger: JobLedger, node: str) -> tuple[Fix, ...]:
    """Return what to check; ending the job is never proposed: work after that of the GPUs would be lost."""
    if ledger.running:
        return (Fix("see what still runs, and the end of its output", processes(ledger, node)),)
    return (
        Fix("move work that ran then and needs no GPU to a job of its own (sbatch --dependency=afterok:JOBID)"),
        Fix("if nothing ran then, see which process the script still waited for: the job ends with its last process"),
    )
