"""rollback: uses the previous model again, if the one that the rule saw is still in use."""

from typing import Final

from gpuwaste.act.actions.action_kind import ActionKind, Execution, SiteProgram
from gpuwaste.act.actions.action_target import on_model

COMMAND: Final = ("/usr/bin/gpuwaste", "model", "rollback", "--if-champion", "{model}")
KIND: Final = ActionKind(
    name="rollback",
    about="Use the previous model again, if the one that the rule saw is still in use.",
    subject="model",
    needs="program",
    undo="gpuwaste model promote NAME",
    execution=Execution(on_model, SiteProgram("rollback", ("model",), COMMAND), visible=False),
)
