"""signal: sends a signal to a running job, such as USR1 to its batch script, which may then write a checkpoint."""

from typing import Final

from gpuwaste.act.actions.action_kind import (
    ActionKind,
    ActionOption,
    ActionRequest,
    ActionSlurm,
    Execution,
    Plan,
    choice,
)
from gpuwaste.act.actions.action_target import RUNNING, not_yet, on_run

_SIGNALS: Final = ("USR1", "USR2", "INT", "TERM", "CONT")
_TARGETS: Final = {"batch": ("--batch",), "steps": (), "all": ("--full",)}


def _act(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> str:
    signal, to = request.options["signal"], _TARGETS[request.options["to"]]
    filters = (f"--user={request.user}", f"--state={plan['state']}")
    return slurm.text("scancel", f"--signal={signal}", *to, *filters, plan["job"])


KIND: Final = ActionKind(
    name="signal",
    about="Send a signal to the running job.",
    subject="run",
    needs="operator",
    undo="",
    ends_runs=True,
    protects=True,
    execution=Execution(on_run(RUNNING, not_yet), _act, visible=False),
    options=(
        ActionOption("signal", f"the signal: {', '.join(_SIGNALS)}", choice(*_SIGNALS), "USR1"),
        ActionOption("to", "batch (the batch script), steps, or all (both)", choice(*_TARGETS), "batch"),
    ),
)
