"""profile: runs a site program that inspects a running job, such as a sampling profiler on its nodes."""

from typing import Final

from gpuwaste.act.actions.action_kind import (
    ActionKind,
    ActionRequest,
    ActionSlurm,
    Execution,
    LookResult,
    Plan,
    SiteProgram,
)
from gpuwaste.act.actions.action_target import RUNNING, on_run, owner_problem
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del request, slurm, plan
    if problem := owner_problem(job):
        return LookResult("moot", problem)
    return LookResult("todo", "", {"user": job.user, "nodes": job.node_list})


KIND: Final = ActionKind(
    name="profile",
    about="Run the site's profiler on the nodes of a running job.",
    subject="run",
    needs="program",
    undo="",
    execution=Execution(on_run(RUNNING, _judge), SiteProgram("profile", ("job", "user", "nodes")), visible=False),
)
