"""The same trees on only the request: the model without history."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.features import GROUPS
from gpuwaste.advice.predict.targets import Target
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer
from gpuwaste.models.evaluate.methods.model import said

TITLE: Final = "request fields only"
ORDER: Final = 40


def supports(target: Target) -> bool:
    """Return true: every target can be predicted from the request."""
    return bool(target.name)


def answer(question: EvaluationTask) -> MethodAnswer:
    """Fit, calibrate and correct in the same way as the model."""
    vectors = np.ascontiguousarray(question.vectors[:, request_columns()])
    return said(question.learn_on(vectors), question)


def request_columns() -> NDArray[np.intp]:
    """Return the places of the features that do not depend on the past: they are the first ones."""
    return np.arange(sum(len(group.features) for group in GROUPS if not group.history))
