"""Many concurrent jobs of one user that use so little that they would share one GPU.

Thresholds. A job is small when each of its devices has a mean below the under-used limit (5 %) and above 0: what never
ran is gpus_untouched's. Three jobs at once, since two may be chance. They fit on one GPU while their means add up to
80 % at most and their memory to 90 % of the GPU's, which leaves room for peaks.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.core.finding import Finding
from gpuwaste.waste.findings._support import judgeable, memory_resident
from gpuwaste.waste.ledger import JobLedger
from gpuwaste.waste.settings import LedgerSettings

MIN_JOBS: Final = 3
MAX_SUM_PCT: Final = 80.0
MAX_MEMORY: Final = 0.9


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:
    """Yield a finding for each stretch of time in which one user's small jobs overlap."""
    of_user: dict[tuple[str, str], list[JobLedger]] = {}
    for ledger in judgeable(jobs, settings, settings.run_min_s):
        if not ledger.job.interactive and _small(ledger, settings):
            of_user.setdefault((ledger.job.cluster, ledger.job.user), []).append(ledger)
    for _, theirs in sorted(of_user.items()):
        for group in _overlapping(theirs):
            most = most_at_once(group)
            if len(most) >= MIN_JOBS and _fits(most):
                yield _finding(group, most)


def most_at_once(group: Sequence[JobLedger]) -> list[JobLedger]:
    """Return the largest set of runs that ran at the same time."""
    best: list[JobLedger] = []
    running: list[JobLedger] = []
    for ledger in sorted(group, key=lambda j: j.begin_ms):
        running = [other for other in running if other.until_ms > ledger.begin_ms]
        running.append(ledger)
        if len(running) > len(best):
            best = list(running)
    return best


def _small(ledger: JobLedger, settings: LedgerSettings) -> bool:
    means = [d.mean_pct or 0.0 for d in ledger.devices]
    return all(0 < m < settings.underused_below_pct for m in means) and not any(
        memory_resident(d, settings) for d in ledger.devices
    )


def _overlapping(jobs: Sequence[JobLedger]) -> Iterator[list[JobLedger]]:
    """Yield groups of runs that follow each other without a gap in time."""
    group: list[JobLedger] = []
    until_ms = 0
    for ledger in sorted(jobs, key=lambda j: j.begin_ms):
        if group and ledger.begin_ms >= until_ms:
            yield group
            group, until_ms = [], 0
        group.append(ledger)
        until_ms = max(until_ms, ledger.until_ms)
    if group:
        yield group


def _fits(most: Sequence[JobLedger]) -> bool:
    """Tell whether the runs would fit on one GPU together; memory that is not known does not fit."""
    devices = [d for ledger in most for d in ledger.devices]
    if sum(d.mean_pct or 0.0 for d in devices) > MAX_SUM_PCT:
        return False
    ratios = [d.use.memory_ratio for d in devices]
    return sum(1.0 if r is None else r for r in ratios) <= MAX_MEMORY


def _finding(group: Sequence[JobLedger], most: Sequence[JobLedger]) -> Finding:
    alloc_ms = sum(j.alloc_ms for j in group)
    needed_ms = max(j.until_ms for j in group) - min(j.begin_ms for j in group)
    means = [d.mean_pct or 0.0 for j in most for d in j.devices]
    whole = most[0].whole_node
    steps = f"for i in $(seq {len(most)}); do ./run.sh $i & done; wait"
    fix = (steps,) if whole else ("#SBATCH --gres=gpu:1", steps)
    return Finding(
        kind="many_small_jobs",
        title=f"{len(group)} jobs, {len(most)} at once, use {sum(means) / len(means):.1f} % of a GPU each: "
        "run them side by side on one GPU",
        runs=tuple(j.job.run_key for j in group),
        evidence={
            "jobs": len(group),
            "at_once": len(most),
            "mean_pct": sum(means) / len(means),
            "sum_pct": sum(means),
            "memory_share": sum(d.use.memory_ratio or 0.0 for j in most for d in j.devices),
            "gpu_s": alloc_ms / 1000,
            "needed_gpu_s": needed_ms / 1000,
        },
        fix=fix,
        wasted_gpu_s=max(0, alloc_ms - needed_ms) / 1000,
        provisional=any(j.running for j in group),
    )
