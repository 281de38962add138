"""hold: keeps a waiting job from starting."""

from typing import Final

from gpuwaste.act.actions.action_kind import (
    ActionKind,
    ActionOption,
    ActionRequest,
    ActionSlurm,
    Execution,
    LookResult,
    Plan,
    choice,
)
from gpuwaste.act.actions.action_target import WAITING, on_run
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob

_COMMANDS: Final = {"user": "uhold", "operator": "hold"}


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del request, slurm, plan
    if job.state in WAITING and job.priority == 0:
        return LookResult("done", f"the job is held: {job.reason}")
    return LookResult("todo")


def _act(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> str:
    return slurm.text("scontrol", _COMMANDS[request.options["release_by"]], plan["job"])


KIND: Final = ActionKind(
    name="hold",
    about="Hold a waiting job; of an array the tasks that wait.",
    subject="run",
    needs="operator",
    undo="action release, or scontrol release JOB",
    severity=1,
    execution=Execution(on_run(WAITING, _judge), _act),
    options=(
        ActionOption("release_by", "who can release the job: user or operator", choice("user", "operator"), "user"),
    ),
)
