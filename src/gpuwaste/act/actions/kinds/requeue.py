"""requeue: ends a running batch job and puts it back into the queue; the job keeps its id."""

import re
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
from gpuwaste.act.actions.action_target import HELD, on_run, planned
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob

_ANY: Final = "any"
_COUNT: Final = re.compile(r"[1-9][0-9]?", re.ASCII)
_COMMANDS: Final = {"no": "requeue", "yes": "requeuehold"}


def _times(text: str) -> str:
    return "" if text == _ANY or _COUNT.fullmatch(text) else f"{text!r:.40}: expected {_ANY} or a number from 1 to 99"


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del slurm, plan
    if not job.batch:
        return LookResult("moot", "the run is not a batch job: Slurm cannot requeue it")
    most = request.options["at_most"]
    if most != _ANY and job.restarts >= int(most):
        return LookResult("moot", f"the job has been requeued {job.restarts} times: at_most is {most}")
    return LookResult("todo", "", {"restarts": str(job.restarts)})


_same_run = on_run(HELD, _judge)


def _look(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    seen = _same_run(request, slurm, plan)
    if seen.standing in {"moot", "open"} and plan and request.run is not None:
        again = [job for job in slurm.job(request.run.job_id) if _is_again(job, request, plan)]
        if again:
            return LookResult("done", f"the job was requeued and is {again[0].state}")
    return seen


def _is_again(job: RunningJob, request: ActionRequest, plan: Plan) -> bool:
    same = request.run is not None and job.job_id == request.run.job_id and job.user == request.user
    return same and job.restarts > planned(plan, "restarts")


def _act(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> str:
    return slurm.text("scontrol", _COMMANDS[request.options["hold"]], plan["job"])


KIND: Final = ActionKind(
    name="requeue",
    about="Requeue a running batch job; what it has not saved is lost.",
    subject="run",
    needs="operator",
    undo="",
    severity=4,
    ends_runs=True,
    execution=Execution(_look, _act),
    options=(
        ActionOption("hold", "yes: the job is held after it, and its user can release it", choice("no", "yes"), "no"),
        ActionOption("at_most", "how often the job is requeued at most, 1 to 99, or any", _times, _ANY),
    ),
)
