"""promote: uses another model of the registry, if the one that the rule saw is still in use."""

from typing import Final

from gpuwaste.act.actions.action_kind import ActionKind, ActionOption, Execution, SiteProgram
from gpuwaste.act.actions.action_target import model_name_problem, on_model

COMMAND: Final = ("/usr/bin/gpuwaste", "model", "promote", "{to}", "--if-champion", "{model}")
KIND: Final = ActionKind(
    name="promote",
    about="Use another model, if the one that the rule saw is still in use.",
    subject="model",
    needs="program",
    undo="action rollback, or gpuwaste model rollback",
    execution=Execution(on_model, SiteProgram("promote", ("model", "to"), COMMAND), visible=False),
    options=(ActionOption("to", "the model to use, as `gpuwaste model list` prints it", model_name_problem),),
)
