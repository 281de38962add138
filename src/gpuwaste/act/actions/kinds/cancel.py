"""cancel: ends a run, waiting or running."""

from typing import Final

from gpuwaste.act.actions.action_kind import ActionKind, ActionRequest, ActionSlurm, Execution, LookResult, Plan
from gpuwaste.act.actions.action_target import HELD, WAITING, command, on_run
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del request, slurm
    if plan and job.state == "CANCELLED":
        return LookResult("done", f"the run is {job.state}")
    return LookResult("todo")


# The filters make scancel skip a job that was requeued after the look: it is pending then.
KIND: Final = ActionKind(
    name="cancel",
    about="Cancel the run.",
    subject="run",
    needs="operator",
    undo="",
    severity=5,
    ends_runs=True,
    execution=Execution(
        on_run(HELD | WAITING, _judge), command("scancel", "--user={user}", "--state={state}", "{job}")
    ),
)
