"""release: lets a held job start."""

from typing import Final

from gpuwaste.act.actions.action_kind import ActionKind, ActionRequest, ActionSlurm, Execution, LookResult, Plan
from gpuwaste.act.actions.action_target import WAITING, command, on_run
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del request, slurm, plan
    if job.state in WAITING and job.priority:
        return LookResult("done", "the job is not held")
    return LookResult("todo")


KIND: Final = ActionKind(
    name="release",
    about="Release a held job.",
    subject="run",
    needs="operator",
    undo="action hold, or scontrol hold JOB",
    execution=Execution(on_run(WAITING, _judge), command("scontrol", "release", "{job}")),
)
