"""The outcome of the user's last finished job; before the first one, the larger class of the first part."""

from typing import Final

import numpy as np

from gpuwaste.advice.predict.targets import Target
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer, by_user

TITLE: Final = "user's last outcome"
ORDER: Final = 20


def supports(target: Target) -> bool:
    """Return whether it is a probability: only these have outcomes."""
    return target.kind == "probability"


def answer(question: EvaluationTask) -> MethodAnswer:
    """Return 0 or 1."""
    usual = float(question.y[question.learn].mean() >= 0.5)  # noqa: PLR2004 the larger class
    last = by_user(question.table, question.y, (np.nan,), lambda _, label: (label,))[question.test, 0]
    return MethodAnswer(np.where(np.isnan(last), usual, last))
