"""resubmit: a site program submits a waiting job again as a cascade of shorter jobs, one after another.

The split is that of `gpuwaste plan` (candidate cascade). Only a site program can do it: in Slurm only root can submit
for another user, and only the user knows whether the script continues from its last checkpoint.
"""

import math
from typing import Final

from gpuwaste.act.actions.action_kind import (
    ActionKind,
    ActionOption,
    ActionRequest,
    ActionSlurm,
    Execution,
    LookResult,
    Plan,
    SiteProgram,
    duration,
)
from gpuwaste.act.actions.action_target import WAITING, on_run, owner_problem
from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S, format_duration, parse_duration_s
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob

_MOST_JOBS: Final = 6


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del slurm, plan
    if problem := owner_problem(job) or _unfit(job):
        return LookResult("moot", problem)
    part_s = (parse_duration_s(request.options["part"]) or HOUR_S) // MINUTE_S * MINUTE_S
    jobs = math.ceil((job.time_limit_s or 0) / part_s)
    if not 1 < jobs <= _MOST_JOBS:
        limit = format_duration(job.time_limit_s or 0)
        return LookResult(
            "moot", f"a limit of {limit} is {jobs} jobs of {format_duration(part_s)}: 2 to {_MOST_JOBS} expected"
        )
    return LookResult("todo", "", {"user": job.user, "part": format_duration(part_s), "jobs": str(jobs)})


def _unfit(job: RunningJob) -> str:
    if not job.batch:
        return "the run is not a batch job: it has no script"
    if job.array_job_id is not None:
        return "the run is of an array"
    return "the job has no time limit" if job.time_limit_s is None else ""


KIND: Final = ActionKind(
    name="resubmit",
    about="Submit a waiting job again as a cascade of shorter jobs, by a program of the site.",
    subject="run",
    needs="program",
    undo="",
    severity=4,
    ends_runs=True,
    execution=Execution(
        on_run(WAITING, _judge), SiteProgram("resubmit", ("job", "user", "part", "jobs")), visible=False
    ),
    options=(ActionOption("part", "time limit of each job, such as 4:00:00", duration(HOUR_S, 7 * DAY_S)),),
)
