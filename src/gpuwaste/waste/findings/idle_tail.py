"""GPUs that worked and then were idle until the end of the job: nothing ends the job when the work is done.

Thresholds. The tail is finding_min_s (ten minutes) and a tenth of the run at least: shorter ones are checkpoints and
copying of results. All GPUs must have stopped: one that still works is needed. Interactive jobs belong to
idle_interactive.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.finding import Finding
from gpuwaste.core.units import format_duration
from gpuwaste.waste.findings._support import judgeable, memory_resident, plural
from gpuwaste.waste.ledger import JobLedger
from gpuwaste.waste.ledger_settings import LedgerSettings

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
        tail = format_duration(tail_ms / 1000)
        yield Finding(
            kind="idle_tail",
            title=f"{plural(len(worked))} idle for the last {tail} of the run: end the job when its work is done",
            runs=(ledger.job.run_key,),
            evidence={"tail_s": tail_ms / 1000, "gpus": len(worked), "ran_s": ledger.ran_ms / 1000},
            fix=_fix(ledger, tail_ms),
            wasted_gpu_s=sum(min(d.idle_run_ms, tail_ms) for d in worked) / 1000,
            provisional=ledger.running,
        )


def tail_of(ledger: JobLedger) -> int:
    """Return the milliseconds from the last activity of any GPU to the last instant seen, idle as a whole."""
    worked = [d for d in ledger.devices if d.use.last_active_ms is not None]
    if not worked:
        return 0
    last_ms = max(d.use.last_active_ms or 0 for d in worked)
    seen_ms = min(d.use.t1_ms for d in worked)
    return min(max(0, min(seen_ms, ledger.until_ms) - last_ms), *(d.idle_run_ms for d in worked))


def _fix(ledger: JobLedger, tail_ms: int) -> tuple[str, ...]:
    if ledger.running:
        return (f"scancel {ledger.job.printed_id}",)
    needed_s = (ledger.ran_ms - tail_ms) / 1000 * 1.2
    minutes = max(1, -(-int(needed_s) // 60))
    return (f"#SBATCH --time={format_duration(minutes * 60)}", "kill $(jobs -p); exit    # last line of the script")
