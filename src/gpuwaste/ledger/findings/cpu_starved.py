"""The GPU waits for the CPU: its use is low while the job's CPUs are saturated.

Thresholds. CPU time over CPUs and time of 90 %: below that the program waits for something else, such as files. The
mean of the GPUs that the job uses below the low limit (33 %). A run of finding_min_s (ten
minutes), so that a start-up phase of reading data does not decide.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.units import say_percent
from gpuwaste.ledger.finding import Finding, Fix, cpus_per_task, judgeable, plural
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings

CAUSE: Final = "too few CPUs for the GPUs"
SATURATED: Final = 0.9
LIMITS: Final = {"cpu_saturated_ratio": SATURATED}


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each run whose CPUs slow its GPUs down."""
    for ledger in judgeable(jobs, settings, settings.finding_min_s):
        used = [d for d in ledger.devices if d.use.pct_ms]
        mean = sum(d.mean_pct or 0.0 for d in used) / len(used) if used else None
        if mean is None or mean >= settings.low_below_pct:
            continue
        ratio = ledger.node_cpu_ratio
        if ratio is None and ledger.cpu_held_s:
            ratio = (ledger.cpu_used_s or 0.0) / ledger.cpu_held_s
        if ratio is None or ratio < SATURATED:
            continue
        cpus = ledger.job.cpus or 1
        yield Finding(
            kind="cpu_starved",
            title=f"GPUs at {mean:.0f} % with its {plural(cpus, 'CPU')} {say_percent(min(1.0, ratio))} busy: "
            + ("load data with all CPUs" if ledger.whole_node else "request more CPUs"),
            runs=(ledger.job.run_key,),
            evidence={"mean_pct": mean, "cpu_ratio": ratio, "cpus": cpus, "gpus": len(ledger.devices)},
            fixes=(_fix(ledger, cpus),),
            wasted_gpu_s=ledger.wasted_ms / 1000,
            provisional=ledger.running,
        )


def _fix(ledger: JobLedger, cpus: int) -> Fix:
    """Return twice the CPUs where the job may request them; a line only where its CPUs per task are known."""
    per_node = max(1, cpus // max(1, ledger.job.n_nodes or 1))
    if ledger.whole_node:
        return Fix(f"load data with all {plural(per_node, 'CPU')} of a node (PyTorch: num_workers of DataLoader)")
    each = cpus_per_task(ledger.job)
    return Fix(
        f"request more CPUs, {2 * per_node} on a node if the nodes have them, and load data with all of them "
        "(PyTorch: num_workers of DataLoader)",
        (f"#SBATCH --cpus-per-task={2 * each}",) if each else (),
    )
