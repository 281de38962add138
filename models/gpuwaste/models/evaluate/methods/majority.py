"""The larger class of the first part for everybody: what no model may be worse than."""

from typing import Final

import numpy as np

from gpuwaste.advice.predict.targets import Target
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer

TITLE: Final = "majority"
ORDER: Final = 10


def supports(target: Target) -> bool:
    """Probabilities alone have classes."""
    return target.kind == "probability"


def answer(question: EvaluationTask) -> MethodAnswer:
    """Say the share of the first part."""
    rate = float(question.y[question.learn].mean())
    return MethodAnswer(np.full(len(question.test), rate))
