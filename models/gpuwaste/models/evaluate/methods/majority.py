"""The larger class of the first part for every job: no model may be worse than this."""

from typing import Final

import numpy as np

from gpuwaste.advice.predict.targets import Target
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer

TITLE: Final = "majority"
ORDER: Final = 10


def supports(target: Target) -> bool:
    """Return whether it is a probability: only these have classes."""
    return target.kind == "probability"


def answer(question: EvaluationTask) -> MethodAnswer:
    """Return the share of the first part."""
    rate = float(question.y[question.learn].mean())
    return MethodAnswer(np.full(len(question.test), rate))
