"""Prequential: the model as a site has it that trains every week, over the last 30 % of a log, beside the frozen one.

At the first submission of each week the trees are fitted again on all jobs that had ended by then, with the same
recipe; nothing is chosen again: thresholds and the start of the rolling correction are those of the frozen model, and
the correction goes on through the weeks. Every new model is taken, whether it is better or not.
"""

from dataclasses import dataclass, replace

import numpy as np

from gpuwaste.advice.predict.model_comparison import PairedComparison, compare
from gpuwaste.core.units import DAY_S, WEEK_S
from gpuwaste.models.evaluate.evaluation import judge
from gpuwaste.models.evaluate.figures import Figures
from gpuwaste.models.evaluate.methods.model import said
from gpuwaste.models.evaluate.task import EvaluationTask, FittedModel
from gpuwaste.models.fit import fit
from gpuwaste.models.split import Rows, known_before


@dataclass(frozen=True, slots=True)
class Prequential:
    """The figures of both on the same jobs, the frozen compared with the weekly in pairs, and the number of fits.

    The fit at the beginning of the test part is the frozen model's own and is not counted.
    """

    frozen: Figures
    weekly: Figures
    paired: PairedComparison
    fits: int
    days: float


def prequential(question: EvaluationTask, every_s: int = WEEK_S) -> Prequential:
    """Judge a probability frozen and retrained. Raises NoDataError where it cannot be learnt."""
    weekly, fits = retrained(question, every_s)
    answers = [said(learnt, question) for learnt in (question.learnt, weekly)]
    figures = [judge(question, answer) for answer in answers]
    rows, table = question.test, question.table
    values = [np.asarray(answer.values, dtype=np.float64) for answer in answers]
    paired = compare(question.y[rows], values[0], values[1], table.user.codes[rows])
    submitted = table.submit[question.split.test]
    return Prequential(figures[0], figures[1], paired, fits, float(submitted[-1] - submitted[0]) / DAY_S)


def retrained(question: EvaluationTask, every_s: int = WEEK_S) -> tuple[FittedModel, int]:
    """Return the frozen model with other trees from each later week on, and how often trees were fitted for that."""
    table, test = question.table, question.split.test
    raw, nothing = question.learnt.raw.copy(), np.empty(0, dtype=np.intp)
    begins = _begins(table.submit[test], every_s)
    for begin in begins:
        first = int(test[begin])
        known = known_before(table, np.arange(first), int(table.submit[first]))
        own = {"seed": question.seed, "threads": question.threads}
        model = fit(question.target, table, question.vectors, known, nothing, recipe=question.recipe, **own)
        raw[first:] = model.raw(question.vectors[first:])
    return replace(question.learnt, raw=raw), len(begins)


def _begins(submitted: Rows, every_s: int) -> list[int]:
    """Return the first row of each period after the first one; periods without a submission have none."""
    number = (submitted - submitted[0]) // every_s
    return (np.flatnonzero(np.diff(number)) + 1).tolist()
