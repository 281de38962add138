"""The user's exponentially weighted rate, starting from the rate of the first part."""

from typing import Final

from gpuwaste.advice.predict.targets import Target
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer, by_user
from gpuwaste.models.prediction_metrics import best_f1_threshold

TITLE: Final = "weighted rate"
ORDER: Final = 30
WEIGHT: Final = 0.2  # of the newest outcome: the last five make two thirds of the rate


def supports(target: Target) -> bool:
    """Return whether it is a probability: only these have rates."""
    return target.kind == "probability"


def answer(question: EvaluationTask) -> MethodAnswer:
    """Return the rate; the threshold is the one with the best F1 on validation rows."""
    usual = float(question.y[question.learn].mean())
    rate = by_user(question.table, question.y, (usual,), _after)[:, 0]
    seen = question.y[question.validate]
    mixed = len(seen) > 0 and 0 < seen.mean() < 1
    threshold = best_f1_threshold(seen, rate[question.validate]) if mixed else 0.5
    return MethodAnswer(rate[question.test], threshold)


def _after(state: tuple[float, ...], label: float) -> tuple[float, ...]:
    return (state[0] + WEIGHT * (label - state[0]),)
