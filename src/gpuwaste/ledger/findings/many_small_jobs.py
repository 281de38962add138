"""Many concurrent jobs of one user that use so little that they would share one GPU.

Thresholds. A job is small when each of its devices has a mean below the under-used limit (5 % by default) and above 0:
GPUs that were never used belong to gpus_untouched. Three jobs at once, since two may be chance. They fit on one GPU
while their means add up to 80 % at most and their memory to 90 % of the GPU's, which leaves room for peaks. Query
ledger_rows says which runs are small.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.ledger.finding import Finding, Fix
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings
from gpuwaste.slurm.run_key import RunKey

CAUSE: Final = "many small jobs"
MIN_JOBS: Final = 3
MAX_SUM_PCT: Final = 80.0
MAX_MEMORY: Final = 0.9
KIND: Final = "many_small_jobs"


@dataclass(frozen=True, slots=True)
class SmallRun:
    """A run that uses so little that it could share a GPU (query ledger_rows): sums over its devices."""

    key: RunKey
    user: str
    alloc_ms: int
    whole_node: bool
    until_ms: int
    pct: float
    devices: int
    memory: float  # shares of a GPU's memory, of the devices with known memory
    memory_unknown: int
    running: bool

    @property
    def begin_ms(self) -> int:
        """The start."""
        return self.key.start * 1000


def find(jobs: Sequence[JobLedger], settings: LedgerSettings) -> Iterator[Finding]:  # noqa: ARG001 as every finding
    """Yield a finding for each stretch of time in which one user's small jobs overlap."""
    small = [(j, j.small) for j in jobs if j.small is not None]
    return groups(
        SmallRun(j.job.run_key, j.job.user, j.alloc_ms, j.whole_node, running=j.running, **row) for j, row in small
    )


def groups(runs: Iterable[SmallRun]) -> Iterator[Finding]:
    """Yield a finding for each stretch of time in which one user's runs overlap."""
    of_user: dict[tuple[str, str], list[SmallRun]] = {}
    for run in runs:
        of_user.setdefault((run.key.cluster, run.user), []).append(run)
    for _, theirs in sorted(of_user.items()):
        for group in _overlapping(theirs):
            most = most_at_once(group)
            if len(most) >= MIN_JOBS and _fits(most):
                yield _finding(group, most)


def most_at_once(group: Sequence[SmallRun]) -> list[SmallRun]:
    """Return the largest set of runs that ran at the same time."""
    best: list[SmallRun] = []
    running: list[SmallRun] = []
    for run in sorted(group, key=lambda r: r.begin_ms):
        running = [other for other in running if other.until_ms > run.begin_ms]
        running.append(run)
        if len(running) > len(best):
            best = list(running)
    return best


def _overlapping(jobs: Sequence[SmallRun]) -> Iterator[list[SmallRun]]:
    """Yield groups of runs that follow each other without a gap in time."""
    group: list[SmallRun] = []
    until_ms = 0
    for run in sorted(jobs, key=lambda r: r.begin_ms):
        if group and run.begin_ms >= until_ms:
            yield group
            group, until_ms = [], 0
        group.append(run)
        until_ms = max(until_ms, run.until_ms)
    if group:
        yield group


def _fits(most: Sequence[SmallRun]) -> bool:
    """Return whether the runs would fit on one GPU together; unknown memory does not fit."""
    return sum(r.pct for r in most) <= MAX_SUM_PCT and sum(r.memory + r.memory_unknown for r in most) <= MAX_MEMORY


def _finding(group: Sequence[SmallRun], most: Sequence[SmallRun]) -> Finding:
    alloc_ms = sum(r.alloc_ms for r in group)
    needed_ms = max(r.until_ms for r in group) - min(r.begin_ms for r in group)
    sum_pct = sum(r.pct for r in most)
    mean_pct = sum_pct / sum(r.devices for r in most)
    return Finding(
        kind=KIND,
        title=f"{len(group)} jobs, {len(most)} at once, use {mean_pct:.1f} % of a GPU each: "
        "run them concurrently on one GPU",
        runs=tuple(r.key for r in group),
        evidence={
            "jobs": len(group),
            "at_once": len(most),
            "mean_pct": mean_pct,
            "sum_pct": sum_pct,
            "memory_share": sum(r.memory for r in most),
            "gpu_s": alloc_ms / 1000,
            "needed_gpu_s": needed_ms / 1000,
        },
        fixes=(Fix(_together(len(most), whole_node=most[0].whole_node)),),
        wasted_gpu_s=max(0, alloc_ms - needed_ms) / 1000,
        provisional=any(r.running for r in group),
    )


def _together(runs: int, *, whole_node: bool) -> str:
    job = "one job" if whole_node else "one job with one GPU"
    return f"start {runs} of them in {job}: each with & at its end, then wait"
