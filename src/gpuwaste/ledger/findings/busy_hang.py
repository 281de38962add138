"""GPUs at 100 % for a long time while almost nothing is computed: usually a collective that waits for a lost peer.

Thresholds. hang_min_s (half an hour) at 95 % and more, in hours in which the SMs were busy below a tenth of the time
or, where the card does not report that, the power stayed below a quarter of its limit: a waiting kernel occupies few
SMs and draws little more than idle power, which is 10 to 20 % of the limit on data-centre cards. Both limits are in
`ledger/run_judging.py`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.units import say_duration
from gpuwaste.ledger.finding import Finding, Fix, judgeable, plural, processes
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings

CAUSE: Final = "hang that looks busy"


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each run with GPUs that look busy and compute nothing."""
    for ledger in judgeable(jobs, settings, settings.hang_min_s):
        hung = [d for d in ledger.devices if d.use.hang_ms >= settings.hang_min_s * 1000]
        if not hung:
            continue
        longest_s = max(d.use.hang_ms for d in hung) / 1000
        yield Finding(
            kind="busy_hang",
            title=f"{plural(len(hung))} at 100 % without work for {say_duration(longest_s)}: probably a hang; "
            "its time is not counted as waste",
            runs=(ledger.job.run_key,),
            evidence={
                "gpus": len(hung),
                "hang_s": longest_s,
                "power_w": hung[0].use.power_w_at_full,
                "power_limit_w": hung[0].use.power_limit_w,
                "sm_ratio": hung[0].use.sm_ratio_at_full,
            },
            fixes=(_fix(ledger, hung[0].use.node),),
            wasted_gpu_s=sum(d.use.hang_ms for d in hung) / 1000,
            provisional=ledger.running,
        )


def _fix(ledger: JobLedger, node: str) -> Fix:
    if not ledger.running:
        return Fix(
            "let collective operations time out, so that a lost process ends the job (see the end of its output)"
        )
    return Fix(
        "see where its processes wait (py-spy dump --pid PID) before you cancel it: what is not written is lost",
        processes(ledger, node),
    )
