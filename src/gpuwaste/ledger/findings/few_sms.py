"""GPUs that are busy all the time with few of their multiprocessors: small kernels, small batches.

A GPU counts as busy while any kernel runs, on one multiprocessor of 132 too.

Thresholds. finding_min_s (ten minutes) at more than the high limit; of the busy time a mean share of multiprocessors
with work below a quarter (NVIDIA, DCGM user guide, "Profiling metrics": less than 0.5 likely indicates ineffective
use), profiled in half of the known time or more.
Profiling is not sufficient: at 95 % and more the power that NVML read must also stay below half of its limit, and time
of a hang (busy_hang) does not count.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.units import say_percent
from gpuwaste.ledger.finding import Finding, Fix, judgeable, plural
from gpuwaste.ledger.ledger import DeviceLedger, JobLedger, LedgerSettings

CAUSE: Final = "busy, but few multiprocessors at work"
FEW: Final = 0.25
LOW_POWER: Final = 0.5
LIMITS: Final = {"few_sms_ratio": FEW, "few_sms_power_ratio": LOW_POWER}
_MEMORY_LEFT: Final = 0.5  # below this peak a larger batch fits


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each run with GPUs that are busy with few of their multiprocessors."""
    for ledger in judgeable(jobs, settings, settings.finding_min_s):
        few = [d for d in ledger.devices if _is_few(d, settings)]
        if not few:
            continue
        least = min(few, key=lambda d: d.use.sm_share or 0.0)
        use, share = least.use, least.use.sm_share or 0.0
        yield Finding(
            kind="few_sms",
            title=f"{plural(len(few))} busy with {say_percent(share)} of the multiprocessors: larger batches, a "
            "MIG slice or a shared GPU would do; this time is not counted as waste",
            runs=(ledger.job.run_key,),
            evidence={
                "gpus": len(few),
                "mean_pct": least.mean_pct,
                "sm_share": share,
                "tensor_active": use.tensor_active,
                "dram_active": use.dram_active,
                "power_w": use.power_w_at_full,
                "power_limit_w": use.power_limit_w,
                "memory_share": use.memory_ratio,
            },
            fixes=_fixes(least),
            wasted_gpu_s=sum(d.high_ms * (1 - (d.use.sm_share or 0.0)) for d in few) / 1000,
            provisional=ledger.running,
        )


def _is_few(device: DeviceLedger, settings: LedgerSettings) -> bool:
    use, share = device.use, device.use.sm_share
    if share is None or share >= FEW or device.high_ms < settings.finding_min_s * 1000:
        return False
    if use.power_w_at_full is None or not use.power_limit_w or 2 * use.hang_ms >= device.high_ms:
        return False
    return use.power_w_at_full < LOW_POWER * use.power_limit_w


def _fixes(device: DeviceLedger) -> tuple[Fix, ...]:
    """Return larger batches where memory is left for them, else fewer launches; or a part of a GPU."""
    memory = device.use.memory_ratio
    room = memory is not None and memory < _MEMORY_LEFT
    more = (
        f"larger batches: at most {say_percent(memory or 0)} of the GPU's memory is in use"
        if room
        else "fewer, larger kernels"
    )
    return (
        Fix(f"give the GPU more work at a time ({more})"),
        Fix("request a part of a GPU, a shard or a MIG slice, if the cluster has them", ("sinfo -o '%P %G'",)),
    )
