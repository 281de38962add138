"""A GPU that is idle but holds so much of its memory for a process that the job needs it: exempt, for information.

Thresholds. The site's share of the GPU's memory (memory_resident_ratio, one half). finding_min_s (ten minutes)
of waste, so that short pauses of a large model are not worth a line.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.units import say_percent
from gpuwaste.ledger.finding import Finding, judgeable, memory_resident, plural
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings

CAUSE: Final = "GPU memory held, GPU idle"


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each run with idle GPUs whose memory is in use."""
    for ledger in judgeable(jobs, settings, settings.finding_min_s):
        held = [
            d for d in ledger.devices if d.wasted_ms >= settings.finding_min_s * 1000 and memory_resident(d, settings)
        ]
        if not held:
            continue
        share = max(d.use.memory_ratio or 0.0 for d in held)
        yield Finding(
            kind="memory_resident",
            title=f"{plural(len(held))} idle with up to {say_percent(share)} of the GPU memory in use: exempt",
            runs=(ledger.job.run_key,),
            evidence={"gpus": len(held), "memory_share": share},
            fixes=(),
            wasted_gpu_s=sum(d.wasted_ms for d in held) / 1000,
            provisional=ledger.running,
        )
