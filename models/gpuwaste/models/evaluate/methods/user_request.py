"""The user's request: never too little where the scheduler enforces it, mostly far too much."""

from typing import Final

import numpy as np

from gpuwaste.advice.predict.targets import Target, request_cap
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer

TITLE: Final = "user's request"
ORDER: Final = 10


def supports(target: Target) -> bool:
    """Return whether it is a quantity: only these are requested."""
    return target.kind == "quantiles"


def answer(question: EvaluationTask) -> MethodAnswer:
    """Return the request; a job without one has no limit (inf)."""
    asked = request_cap(question.target.name, question.table)[question.test]
    return MethodAnswer(np.where(np.isnan(asked), np.inf, asked)[:, None])
