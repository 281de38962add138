"""What actions on a model share: the model that the rule saw in use is named to the program, which checks it."""

from gpuwaste.act.actions.action_kind import ActionRequest, LookResult, Plan
from gpuwaste.act.actions.slurm_port import ActionSlurm
from gpuwaste.core.text import PLAIN_NAME


def name_problem(text: str) -> str:
    """Return what is wrong with the name of a model, "" where nothing is."""
    return (
        ""
        if PLAIN_NAME.fullmatch(text)
        else f"{text!r:.40}: expected a model's name, as `gpuwaste model list` prints it"
    )


def look(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    """Look at the request alone: which model is in use is checked where it is changed."""
    del slurm, plan
    if not PLAIN_NAME.fullmatch(request.model):
        return LookResult("moot", f"no model has the name {request.model!r:.80}")
    return LookResult("todo", "", {"model": request.model, **request.options})
