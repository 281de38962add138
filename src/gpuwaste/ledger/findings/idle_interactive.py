"""An interactive job that holds GPUs while nobody uses them.

Thresholds. The site's grace (interactive_grace_s, half an hour) is allowed on each GPU: people read and think. Beyond
it the idle runs count.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.units import say_duration
from gpuwaste.ledger.finding import Finding, Fix, judgeable, memory_resident, plural
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings

CAUSE: Final = "idle interactive job"
_RUNNING: Final = Fix("save your work, then exit the shell or the notebook server of the job")
_ENDED: Final = Fix(
    "exit the shell when the work is done, and request a shorter time limit: a forgotten job then ends earlier"
)


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each interactive run that idled beyond the grace."""
    grace_ms = settings.interactive_grace_s * 1000
    for ledger in judgeable(jobs, settings, settings.interactive_grace_s):
        if not ledger.job.interactive:
            continue
        idle = [d for d in ledger.devices if d.wasted_ms > grace_ms and not memory_resident(d, settings)]
        if not idle:
            continue
        longest_s = max(d.wasted_ms for d in idle) / 1000
        yield Finding(
            kind="idle_interactive",
            title=f"interactive job, {plural(len(idle))} idle for {say_duration(longest_s)}: "
            + ("exit it if the work is done" if ledger.running else "exit the shell when the work is done"),
            runs=(ledger.job.run_key,),
            evidence={"gpus": len(idle), "idle_s": longest_s, "grace_s": settings.interactive_grace_s},
            fixes=(_RUNNING if ledger.running else _ENDED,),
            wasted_gpu_s=sum(d.wasted_ms - grace_ms for d in idle) / 1000,
            provisional=ledger.running,
        )
