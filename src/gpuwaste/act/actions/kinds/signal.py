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

SIGNALS: Final = ("USR1", "USR2", "INT", "TERM", "CONT")
_TARGETS: Final = {"batch": ("--batch",), "steps": (), "all": ("--full",)}


def send(request: ActionRequest, slurm: ActionSlurm, plan: Plan, signal: str, to: str) -> str:
    """Send a signal to the batch script, the steps or all of a run; the filters skip a job that was requeued."""
    filters = (f"--user={request.user}", f"--state={plan['state']}")
    return slurm.text("scancel", f"--signal={signal}", *_TARGETS[to], *filters, plan["job"])


def _act(request: ActionRequest, slurm: ActionSlurm, plan: Plan) -> str:
    return send(request, slurm, plan, request.options["signal"], request.options["to"])


KIND: Final = ActionKind(
    name="signal",
    about="Send a signal to the running job.",
    subject="run",
    needs="operator",
    undo="",
    severity=2,
    ends_runs=True,
    protects=True,
    execution=Execution(on_run(RUNNING, not_yet), _act, visible=False),
    options=(
        ActionOption("signal", f"the signal: {', '.join(SIGNALS)}", choice(*SIGNALS), "USR1"),
        ActionOption("to", "batch (the batch script), steps, or all (both)", choice(*_TARGETS), "batch"),
    ),
)
