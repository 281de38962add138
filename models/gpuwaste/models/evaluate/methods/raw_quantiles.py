"""The trees' quantiles without a conformal shift: shows why the correction is needed."""

from typing import Final

import numpy as np

from gpuwaste.advice.predict.targets import Target, request_cap
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer

TITLE: Final = "raw quantiles"
ORDER: Final = 30


def supports(target: Target) -> bool:
    """Return whether it is a quantity: only these have quantiles."""
    return target.kind == "quantiles"


def answer(question: EvaluationTask) -> MethodAnswer:
    """Return the quantiles, never falling with their level, none above the request."""
    raw = question.learnt.raw[question.test].astype(np.float64)
    asked = request_cap(question.target.name, question.table)[question.test]
    limits = np.exp(np.maximum.accumulate(raw, axis=1))
    return MethodAnswer(np.fmin(limits, asked[:, None]), levels=question.target.quantiles)
