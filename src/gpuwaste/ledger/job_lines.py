"""Lines of a report's table of jobs: runs one by one, the tasks of an array in one line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuwaste.ledger.judged import JudgedRun


@dataclass(frozen=True, slots=True)
class JobLine:
    """What one row of the job table stands for: a run, or the tasks of an array."""

    tasks: list[JudgedRun]
    printed_id: str
    requeued: bool


def job_lines(runs: Iterable[JudgedRun], newest: Mapping[tuple[str, int], int] | None = None) -> list[JobLine]:
    """Return a line for each run, array tasks rolled up, the largest waste first.

    A run that was requeued stays a line of its own: it is another run of the same job. `newest` is when the newest run
    of each job began, where `runs` are not all. Query judged_lines has the same lines.
    """
    ordered = sorted(runs, key=lambda r: r.run_start)
    last = {(run.cluster, run.job_id): run.run_start for run in ordered} if newest is None else newest
    lines = []
    arrays: dict[tuple[str, int], list[JudgedRun]] = {}
    for run in ordered:
        requeued = last[run.cluster, run.job_id] != run.run_start or run.state == "REQUEUED"
        if run.array_job_id is not None and not requeued:
            arrays.setdefault((run.cluster, run.array_job_id), []).append(run)
        else:
            lines.append(JobLine([run], run.printed_id, requeued))
    for (_, array_id), tasks in arrays.items():
        ids = [t.array_task_id or 0 for t in tasks]
        printed = tasks[0].printed_id if len(tasks) == 1 else f"{array_id}_[{min(ids)}-{max(ids)}]"
        lines.append(JobLine(tasks, printed, requeued=False))
    return sorted(lines, key=_order)


def _order(line: JobLine) -> tuple[int, int, str, str]:
    """Return what lines are sorted by: the largest waste first."""
    wasted, held = sum(t.own.wasted_ms for t in line.tasks), sum(t.own.alloc_ms for t in line.tasks)
    return -wasted, -held, line.tasks[0].cluster, line.printed_id


def by_user(runs: Iterable[JudgedRun]) -> dict[str, list[JudgedRun]]:
    """Return the runs of each user, in the order in which they come."""
    of_user: dict[str, list[JudgedRun]] = {}
    for run in runs:
        of_user.setdefault(run.user, []).append(run)
    return of_user
