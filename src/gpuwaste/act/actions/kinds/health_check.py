"""health_check: runs the site's check on a node that is drained and idle; Slurm has no command for it."""

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
from gpuwaste.act.actions.kinds.drain import node_of


def _look(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del plan
    found = node_of(request, slurm)
    if found is None:
        return LookResult("moot", f"Slurm has no node {request.node!r:.80}")
    words = set(found.state.split("+"))
    if not {"IDLE", "DRAIN"} <= words:  # a check may load the GPUs: it must not run at the same time as a job
        return LookResult("moot", f"the node is {found.state}, and not IDLE+DRAIN: drain it, and wait for its jobs")
    return LookResult("todo", "", {"node": found.name})


KIND: Final = ActionKind(
    name="health_check",
    about="Run the site's check on a node that is drained and has no jobs.",
    subject="node",
    needs="program",
    undo="",
    execution=Execution(_look, SiteProgram("health_check", ("node",)), visible=False),
)
