"""The mean of the user's last two ended jobs, at most the request.

D. Tsafrir, Y. Etsion, D. Feitelson: Backfilling Using System-Generated Predictions Rather than User Runtime Estimates
(IEEE TPDS 18(6), 2007). With one ended job its value is used, with none the request.
"""

from typing import Final

import numpy as np

from gpuwaste.advice.predict.targets import Target, request_cap
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer, State, by_user

TITLE: Final = "Tsafrir's last two"
ORDER: Final = 20


def supports(target: Target) -> bool:
    """Return whether it is a quantity: only these have a mean."""
    return target.kind == "quantiles"


def answer(question: EvaluationTask) -> MethodAnswer:
    """Return the mean, bounded by the request."""
    last = by_user(question.table, question.y, (np.nan, np.nan), _after)[question.test]
    second = np.where(np.isnan(last[:, 1]), last[:, 0], last[:, 1])
    asked = request_cap(question.target.name, question.table)[question.test]
    bounded = np.fmin((last[:, 0] + second) / 2, asked)
    return MethodAnswer(np.where(np.isnan(bounded), np.inf, bounded)[:, None])


def _after(state: State, label: float) -> State:
    return (label, state[0])
