"""Finds the subject of an action: a run in slurmctld by its run key and user, never by job id only; a model by name.

The program that changes the model in use checks that it is still the one that the rule saw.
"""

import re
from collections.abc import Callable, Collection
from typing import Final

from gpuwaste.act.actions.action_kind import Act, ActionRequest, ActionSlurm, Look, LookResult, Plan
from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import PLAIN_NAME
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.run_key import RunKey

TARGET: Final = "job"  # in a plan: the job's name in Slurm commands
STATE: Final = "state"  # in a plan: the job's state
WAITING: Final = frozenset({"PENDING"})
RUNNING: Final = frozenset({"RUNNING"})
COMPLETING: Final = "COMPLETING"
HELD: Final = frozenset({"RUNNING", "SUSPENDED"})
_NUMBER: Final = re.compile(r"\d{1,12}", re.ASCII)
_OWNER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,127}", re.ASCII)
_TARGET: Final = re.compile(r"\d{1,10}(_(\d{1,10}|\[[\d,:-]{1,4000}\]))?", re.ASCII)

Judge = Callable[[RunningJob, ActionRequest, ActionSlurm, Plan], LookResult]
"""An action's check of its run's record: called only with the run of the request."""


def key_of(job: RunningJob, cluster: str) -> RunKey | None:
    """Return a record's run key: by its start, else by its submission; None if Slurm gives neither.

    A job that was cancelled while pending has a StartTime too, and no node.
    """
    instant = job.start if job.node_list else job.submit
    return None if instant is None else RunKey(cluster, job.job_id, instant)


def on_run(states: Collection[str], judge: Judge) -> Look:
    """Return a look for an action on a run that is in one of some states."""

    def look(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
        job, reason = _found(request, slurm)
        if job is None:
            return LookResult("moot", reason)
        seen = judge(job, request, slurm, plan)
        if seen.standing != "todo":
            return seen
        if plan and job.state == COMPLETING:
            return LookResult("open", f"the run is {COMPLETING}: it is ending, or being requeued")
        if job.state not in states:
            return LookResult("moot", f"the run is {job.state}")
        target, problem = target_of(job)
        if problem:
            return LookResult("moot", problem)
        # The job's name is from what was just read: a plan that came from the hub must not name it.
        return LookResult("todo", seen.reason, {**seen.plan, TARGET: target, STATE: job.state})

    return look


def command(*words: str) -> Act:
    """Return an act that runs one Slurm command; {job} and the plan's other names are replaced by their values."""

    def act(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> str:
        values = {**plan, "user": request.user}
        return slurm.text(*(word.format_map(values) for word in words))

    return act


def planned(plan: Plan, name: str) -> int:
    """Return a number of a stored plan. Raises ParseError: a plan may be from the hub, which is not trusted."""
    text = plan.get(name, "")
    if not _NUMBER.fullmatch(text):
        raise ParseError(f"the stored plan has {name}={text!r:.40}: expected a number")
    return int(text)


def target_of(job: RunningJob) -> tuple[str, str]:
    """Return the name of exactly this run in Slurm commands, or why there is none.

    A number without task or component names every task of an array or every component of a het job with that first id.
    """
    if job.het_job_id is not None:
        return "", "a component of a heterogeneous job: Slurm acts on all of its components only"
    target = re.sub(r"%\d+\]", "]", job.printed_id)
    if not _TARGET.fullmatch(target):
        return "", f"the job's id cannot be named: {job.printed_id!r:.80}"
    return target, ""


def owner_problem(job: RunningJob) -> str:
    """Return why a run's user cannot be passed to a program, "" if they can: no user name can become an option."""
    return "" if _OWNER.fullmatch(job.user) else f"the user's name cannot be passed to a program: {job.user!r:.80}"


def not_yet(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    """Judge an action whose result Slurm does not show: it is to do."""
    del job, request, slurm, plan
    return LookResult("todo")


def _found(request: ActionRequest, slurm: ActionSlurm) -> tuple[RunningJob | None, str]:
    run = request.run
    if run is None or not request.user:
        return None, "no run and user are named"
    cluster = slurm.cluster_name()
    if run.cluster != cluster:
        return None, f"the run is of cluster {run.cluster!r:.64}, this is {cluster}"
    same_id = [job for job in slurm.job(run.job_id) if job.job_id == run.job_id]
    if not same_id:
        return None, "slurmctld no longer has the job"
    meant = [job for job in same_id if key_of(job, cluster) == run]
    if len(meant) != 1:
        return None, f"job {run.job_id} is another run now: {_shown(same_id[0], cluster)}"
    reason = _forbidden(meant[0], request)
    return (None, reason) if reason else (meant[0], "")


def _forbidden(job: RunningJob, request: ActionRequest) -> str:
    """Return why a record must not be touched although it has the run's key, "" if it may."""
    if job.user != request.user:
        return f"job {job.job_id} is of user {job.user!r:.64}, not of {request.user!r:.64}"
    exempt = job.account in request.exempt_accounts
    return f"account {job.account} is exempt: [actor] exempt_accounts" if exempt else ""


def _shown(job: RunningJob, cluster: str) -> str:
    return f"{key_of(job, cluster) or job.printed_id} {job.state}"


def model_name_problem(text: str) -> str:
    """Return the error in the name of a model, "" for none."""
    return (
        ""
        if PLAIN_NAME.fullmatch(text)
        else f"{text!r:.40}: expected a model's name, as `gpuwaste model list` prints it"
    )


def on_model(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    """Check only the request: the model in use is checked when it is changed."""
    del slurm, plan
    if not PLAIN_NAME.fullmatch(request.model):
        return LookResult("moot", f"no model has the name {request.model!r:.80}")
    return LookResult("todo", "", {"model": request.model, **request.options})
