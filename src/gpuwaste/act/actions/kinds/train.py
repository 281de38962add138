"""train: runs a site program that trains a model; the model in use does not change."""

from typing import Final

from gpuwaste.act.actions.action_kind import ActionKind, Execution, SiteProgram
from gpuwaste.act.actions.action_target import on_model

KIND: Final = ActionKind(
    name="train",
    about="Train a new model, by a program of the site such as a unit or a job.",
    subject="model",
    needs="program",
    undo="",
    execution=Execution(on_model, SiteProgram("train", ("model",)), visible=False),
)
