"""Our model: trees on the request and on the history known at submission, under the rolling correction."""

from typing import Final

from gpuwaste.advice.predict.targets import Target
from gpuwaste.models.evaluate.method import EvaluationTask, FittedModel, MethodAnswer

TITLE: Final = "model"
ORDER: Final = 50


def supports(target: Target) -> bool:
    """Return true: every target is supported."""
    return bool(target.name)


def answer(question: EvaluationTask) -> MethodAnswer:
    """Return what `gpuwaste predict` would have predicted at each submission."""
    return said(question.learnt, question)


def said(learnt: FittedModel, question: EvaluationTask) -> MethodAnswer:
    """Return the answer of a fitted model; its thresholds are those of the validation part."""
    values, points = learnt.values(question.table, question.busy)[question.test], learnt.fitted.model.thresholds
    if question.target.kind == "quantiles":
        return MethodAnswer(values, levels=question.target.quantiles)
    return MethodAnswer(values, points.get("f1", 0.5), points.get("reject", float("nan")))
