"""comment: adds a text to the job's AdminComment, which `sacct -o AdminComment` prints and no user can write."""

from typing import Final

from gpuwaste.act.actions.action_kind import (
    ActionKind,
    ActionOption,
    ActionRequest,
    ActionSlurm,
    Execution,
    LookResult,
    Plan,
    mark,
)
from gpuwaste.act.actions.action_target import HELD, WAITING, command, on_run, target_of
from gpuwaste.core.text import words_of
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob

_TEXT: Final = 200
_NONE: Final = "(null)"  # what squeue prints for an empty comment
_ID_WIDTH: Final = 16
_LONGEST: Final = 4000  # characters of a comment with everything added


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del plan
    text = request.options["text"]
    target, problem = target_of(job)
    if problem:
        return LookResult("moot", problem)
    before = words_of(_comment(slurm, job, target), _LONGEST)
    if text in before.split(";"):
        return LookResult("done", "the comment has the text")
    after = f"{before};{text}" if before else text
    if len(after) > _LONGEST:
        return LookResult("moot", f"the comment would be over {_LONGEST} characters")
    return LookResult("todo", "", {"comment": after})


def _comment(slurm: ActionSlurm, job: RunningJob, target: str) -> str:
    """Return the AdminComment. The job's number before it has a fixed width: no text can imitate it.

    squeue of 26.05 rejects the id of an array's pending tasks, 8_[0-2], so it is run for the entire array.
    """
    column = f"jobid:{_ID_WIDTH},admin_comment:{_LONGEST + _TEXT}"
    asked = target.partition("_[")[0]
    said = slurm.text("squeue", "--noheader", "--all", "--states=all", f"--jobs={asked}", "-O", column)
    for line in said.splitlines():
        if line[:_ID_WIDTH].strip() == str(job.job_id):
            found = line[_ID_WIDTH:].strip()
            return "" if found == _NONE else found
    return ""


KIND: Final = ActionKind(
    name="comment",
    about="Add a text to the job's AdminComment.",
    subject="run",
    needs="administrator",
    undo="scontrol update JobId=JOB AdminComment=TEXT",
    execution=Execution(
        on_run(HELD | WAITING, _judge), command("scontrol", "update", "JobId={job}", "AdminComment={comment}")
    ),
    options=(ActionOption("text", f"the text, one line of at most {_TEXT} characters without ; and =", mark(_TEXT)),),
)
