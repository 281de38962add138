"""The totals of views by a plain definition: second by second nothing, but job by job, without SQL."""

from collections.abc import Iterable, Sequence

from gpuwaste.slurm.accounting.job_record import JobRecord

Edges = tuple[int, int]


def cut_s(begin: int, end: int, edges: Edges) -> int:
    """Return the seconds of [begin, end) that lie between the edges."""
    return max(0, min(end, edges[1]) - max(begin, edges[0]))


def held_s(jobs: Iterable[JobRecord], edges: Edges, now: int, of: str) -> int:
    """Return the GPU- or CPU-seconds that jobs held between the edges; a running job holds until now."""
    return sum(
        (getattr(job, of) or 0) * cut_s(job.start, now if job.end is None else job.end, edges)
        for job in jobs
        if job.start is not None
    )


def waiting_s(jobs: Iterable[JobRecord], edges: Edges, now: int) -> int:
    """Return the seconds that jobs waited between the edges: to their start, their end, or now."""
    found = 0
    for job in jobs:
        until = next((t for t in (job.start, job.end) if t is not None), now)
        found += cut_s(job.submit, until, edges)
    return found


def within(times: Iterable[int | None], edges: Edges) -> int:
    """Return how many of the times lie in [start, end)."""
    return sum(time is not None and edges[0] <= time < edges[1] for time in times)


def lowest(values: Sequence[int], share: float) -> int:
    """Return the smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    count = next(n for n in range(1, len(ordered) + 1) if n >= share * len(ordered))
    return ordered[count - 1]
