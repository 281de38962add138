"""Submits a candidate: one job, or a cascade in which each job starts after the one before."""

from collections.abc import Callable, Sequence

from gpuwaste.core.errors import GpuwasteError, SlurmError
from gpuwaste.plan.document import PlanCandidate, SubmittedPlan
from gpuwaste.plan.plan_request import PlannedSubmission

Sbatch = Callable[[Sequence[str]], int]
"""Submits `sbatch WORDS` and returns the job's id. Raises SlurmError."""


def submit_candidate(submission: PlannedSubmission, one: PlanCandidate, sbatch: Sbatch) -> list[int]:
    """Submit and return the ids, in order. Raises SlurmError, which names the jobs that were submitted before it."""
    ids: list[int] = []
    for number in range(1, one.jobs + 1):
        after = (f"--dependency=afterany:{ids[-1]}",) if ids else ()
        try:
            ids.append(sbatch(submission.with_options((*one.options, *after))))
        except GpuwasteError as error:
            if not ids:
                raise
            done = ",".join(map(str, ids))
            raise SlurmError(
                f"job {number} of {one.jobs}: {error}; submitted before it: {done} (scancel {done} removes them)"
            ) from error
    return ids


def to_record(plan_name: str, one: PlanCandidate, jobs: Sequence[int]) -> SubmittedPlan:
    """Return what the hub is told of a candidate that was submitted as these jobs."""
    return SubmittedPlan(
        jobs=list(jobs),
        candidate=one.number,
        title=one.title,
        name=plan_name,
        partition=one.partition,
        qos=one.qos,
        gpus=one.gpus,
        time_limit_s=one.time_limit_s,
        start=one.start,
        end=one.end,
    )
