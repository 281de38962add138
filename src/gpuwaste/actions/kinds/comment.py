"""comment: adds a text to the job's AdminComment, which `sacct -o AdminComment` prints and no user can write."""

from typing import Final

from gpuwaste.actions.action_kind import ActionKind, ActionRequest, Execution, LookResult, Plan
from gpuwaste.actions.option import Option, mark
from gpuwaste.actions.slurm_port import ActionSlurm
from gpuwaste.actions.the_run import HELD, WAITING, command, on_run, target_of
from gpuwaste.core.text import words_of
from gpuwaste.slurm.scontrol import RunningJob

_TEXT: Final = 200
_NONE: Final = "(null)"  # what squeue prints where there is none
_LONGEST: Final = 4000  # characters of a comment with all that was added


def _judge(job: RunningJob, request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del plan
    text = request.options["text"]
    target, problem = target_of(job)
    if problem:
        return LookResult("moot", problem)
    before = words_of(_comment(slurm, target), _LONGEST)
    if text in before.split(";"):
        return LookResult("done", "the comment has the text")
    after = f"{before};{text}" if before else text
    if len(after) > _LONGEST:
        return LookResult("moot", f"the comment would be over {_LONGEST} characters")
    return LookResult("todo", "", {"comment": after})


def _comment(slurm: ActionSlurm, target: str) -> str:
    """Return the AdminComment: the only column, so that no text in it can imitate another."""
    column = f"admin_comment:{_LONGEST + _TEXT}"
    found = slurm.text("squeue", "--noheader", "--all", "--states=all", f"--jobs={target}", "-O", column).strip()
    return "" if found == _NONE else found


KIND: Final = ActionKind(
    name="comment",
    about="Add a text to the job's AdminComment.",
    subject="run",
    needs="administrator",
    undo="scontrol update JobId=JOB AdminComment=TEXT",
    execution=Execution(
        on_run(HELD | WAITING, _judge), command("scontrol", "update", "JobId={job}", "AdminComment={comment}")
    ),
    options=(Option("text", f"the text, one line of at most {_TEXT} characters without ; and =", mark(_TEXT)),),
)
