"""drain: takes a node out of service for new jobs; those on it run on."""

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
    line,
)
from gpuwaste.slurm.site.cluster_model import Node

_REASON: Final = 150
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", re.ASCII)
_OUT: Final = re.compile(r"\b(DRAIN|DRAINED|DRAINING)\b", re.ASCII)


def node_of(request: ActionRequest, slurm: ActionSlurm) -> Node | None:
    """Return the node of a request; a hostlist such as gpu[1-9] is not a node's name."""
    found = [node for node in slurm.nodes() if node.name == request.node and _NAME.fullmatch(node.name)]
    return found[0] if found else None


def _look(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> LookResult:
    del plan
    found = node_of(request, slurm)
    if found is None:
        return LookResult("moot", f"Slurm has no node {request.node!r:.80}")
    if _OUT.search(found.state):
        return LookResult("done", f"the node is {found.state}")
    return LookResult("todo", "", {"node": found.name})


def _act(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> str:
    reason = f"Reason=gpuwaste: {request.options['reason']}"
    return slurm.text("scontrol", "update", f"NodeName={plan['node']}", "State=DRAIN", reason)


KIND: Final = ActionKind(
    name="drain",
    about="Drain a node: it gets no new jobs.",
    subject="node",
    needs="administrator",
    undo="scontrol update NodeName=NODE State=RESUME",
    severity=1,
    execution=Execution(_look, _act),
    options=(ActionOption("reason", f"the node's Reason, one line of at most {_REASON} characters", line(_REASON)),),
)
