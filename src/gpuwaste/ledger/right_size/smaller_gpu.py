"""Which smaller GPUs of the site the next run of such jobs would fit: by memory, activity, and the wait for them."""

from dataclasses import dataclass
from typing import Final

from gpuwaste.ledger.right_size.gpu_sizes import GpuSize, slow_double, speed_of
from gpuwaste.ledger.right_size.rule import MAX_CHANCE, MAX_SLOWDOWN, MIN_RUNS, WINDOW, Need, slowdown
from gpuwaste.ledger.right_size.such_jobs import GpuWait, SizedSite, SuchJobs

MIN_WAITS: Final = 20


@dataclass(frozen=True, slots=True)
class SmallerGpu:
    """A smaller GPU, and what is expected of the next run on it."""

    size: GpuSize
    need: Need
    chance: float  # at most, that the run does not fit
    slowdown: float  # run time there over run time now
    wait: GpuWait
    wait_now: GpuWait
    slow_double: bool


def smaller_gpus(jobs: SuchJobs, site: SizedSite) -> list[SmallerGpu]:
    """Return the smaller GPUs that fit, the one with the least memory first.

    A MIG slice is for a job of one GPU: processes on several slices cannot exchange data directly.
    """
    _, _, _, gpus, gpu_type = jobs.key
    now, wait_now, need = site.sizes.get(gpu_type), site.waits.get((gpu_type, gpus)), site.need(jobs, "gpu_memory")
    if now is None or wait_now is None or need is None:
        return []
    found = []
    for name, size in site.sizes.items():
        wait = site.waits.get((name, gpus))
        if size.memory_b >= now.memory_b or (size.mig and gpus > 1) or wait is None or not _waits_less(wait, wait_now):
            continue
        chance, slower = need.chance(size.memory_b), _slowdown(jobs, size, now)
        if chance <= MAX_CHANCE and slower is not None and slower <= MAX_SLOWDOWN:
            found.append(SmallerGpu(size, need, chance, slower, wait, wait_now, slow_double(size, now)))
    return sorted(found, key=lambda one: (one.size.memory_b, one.slowdown, one.size.name))


def _waits_less(wait: GpuWait, wait_now: GpuWait) -> bool:
    return min(wait.jobs, wait_now.jobs) >= MIN_WAITS and wait.shorter_than(wait_now)


def _slowdown(jobs: SuchJobs, size: GpuSize, now: GpuSize) -> float | None:
    """Return the slowdown of the run that would be slowed down most; None where too few runs tell."""
    known = [run.activity for run in jobs.completed[-WINDOW:] if run.activity is not None]
    if len(known) < MIN_RUNS:
        return None
    speed = speed_of(size, now)
    return max(slowdown(activity, speed) for activity in known)
