"""One log, cut by time, with every method evaluated on each target: the test part judged once, or week by week.

The second is prequential: the model of a site that trains every week, over the last 30 % of a log, compared with the
frozen one. At the first submission of each week the trees are fitted again on all jobs that had ended by then, with the
same recipe; nothing else is chosen again: thresholds and the start of the rolling correction are those of the frozen
model, and the correction continues through the weeks. Every new model is used, whether it is better or not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.model_comparison import PairedComparison, compare
from gpuwaste.advice.predict.targets import TARGETS, Target
from gpuwaste.core.errors import NoDataError
from gpuwaste.core.units import DAY_S, WEEK_S
from gpuwaste.jobs.history.job_table import Floats, JobTable
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.models.evaluate.figures import MIN_TEST, Figures, of_probability, of_quantiles
from gpuwaste.models.evaluate.method import (
    NO_STATUS,
    EvaluationTask,
    FittedModel,
    Method,
    MethodAnswer,
    all_methods,
    has_status,
)
from gpuwaste.models.evaluate.methods.model import said
from gpuwaste.models.target_fit import fit
from gpuwaste.models.training_rows import HistorySplit, Rows, known_before, reason_of, split_by_time

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class EvaluatedLog:
    """The basis of the figures; the parts are rows of the log in the order of submission."""

    name: str
    jobs: int
    users: int
    end_rule: str
    has_status: bool
    learn: int
    validate: int
    test: int
    unknown_yet: int  # rows of the first two parts that had not ended when the next part began: left out of learning
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one method: its figures, or why there are none."""

    title: str
    figures: Figures
    reason: str = ""
    after_run: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`results` is {target: {method: result}}; `left_out` has the reason why a target is missing.

    `same_as` maps a target to an earlier one whose labels are the same in every row: its results hold for both.
    """

    log: EvaluatedLog
    seed: int
    results: Mapping[str, Mapping[str, Result]]
    left_out: Mapping[str, str]
    same_as: Mapping[str, str] = field(default_factory=dict)


def evaluate(
    name: str,
    table: JobTable,
    vectors: NDArray[np.float32],
    *,
    targets: Sequence[Target] = TARGETS,
    methods: Sequence[Method] | None = None,
    seed: int = 1,
    threads: int = 2,
    trials: int = 0,
    jfp: bool = False,
    intervals: bool = True,
    progress: Progress = lambda _: None,
) -> Evaluation:
    """Judge the methods (default: all; with `jfp` also those that use facts known after the run) on each target.

    `trials` > 0: number of trials of a search for the trees' parameters, only on folds of the first part.

    Raises NoDataError for a log that is too short to be cut.
    """
    split = split_by_time(table)
    if not len(split.train):
        raise NoDataError(
            f"{name}: none of the first 60 % of its jobs had ended when the next one came, so nothing could be learnt: "
            "take a log of a longer time"
        )
    chosen = all_methods(after_run=jfp) if methods is None else methods
    results: dict[str, dict[str, Result]] = {}
    left_out: dict[str, str] = {}
    same_as: dict[str, str] = {}
    asked: dict[str, Floats] = {}
    for target in targets:
        question = EvaluationTask(target, table, vectors, split, seed, threads, trials)
        reason = _unanswerable(question)
        if reason:
            left_out[target.name] = reason
            continue
        same = next((name for name, y in asked.items() if np.array_equal(y, question.y, equal_nan=True)), "")
        asked[target.name] = question.y
        if same:
            results[target.name], same_as[target.name] = results[same], same
            continue
        results[target.name] = {}
        for method in (m for m in chosen if m.supports(target)):
            progress(f"{target.name}: {method.title}")
            results[target.name][method.name] = _result(method, question, intervals)
    return Evaluation(_log(name, table, split), seed, results, left_out, same_as)


def judge(question: EvaluationTask, answer: MethodAnswer, *, intervals: bool = True) -> Figures:
    """Return the figures of an answer over the test part."""
    rows = question.test
    users = question.table.user.codes[rows]
    if question.target.kind == "probability":
        return of_probability(question.y[rows], answer, users, intervals=intervals)
    cpus = question.table.cpus[rows]
    size = np.where(np.isfinite(cpus), cpus, 1.0) if question.target.name == "walltime" else np.ones(len(rows))
    return of_quantiles(question.y[rows], answer, size, users, intervals=intervals)


def _result(method: Method, question: EvaluationTask, intervals: bool) -> Result:
    try:
        answer = method.answer(question)
    except NoDataError as error:
        return Result(method.title, {}, str(error), method.after_run)
    return Result(method.title, judge(question, answer, intervals=intervals), "", method.after_run)


def _unanswerable(question: EvaluationTask) -> str:
    """Return why a target cannot be evaluated here, "" where it can."""
    if not np.isfinite(question.y).any():
        return reason_of(question.target, question.table) or NO_STATUS
    try:
        _ = question.learnt
    except NoDataError as error:
        return str(error)
    count = len(question.test)
    return "" if count >= MIN_TEST else f"{count} labelled jobs in the test part: at least {MIN_TEST} are needed"


def _log(name: str, table: JobTable, split: HistorySplit) -> EvaluatedLog:
    known = {outcome.name: int((table.outcome == outcome).sum()) for outcome in Outcome}
    learn, validate, test = (len(part) for part in (split.train, split.validation, split.test))
    return EvaluatedLog(
        name=name,
        jobs=len(table),
        users=len(np.unique(table.user.codes)),
        end_rule=table.end_rule,
        has_status=has_status(table),
        learn=learn,
        validate=validate,
        test=test,
        unknown_yet=len(table) - learn - validate - test,
        outcomes={outcome: count for outcome, count in known.items() if count},
    )


@dataclass(frozen=True, slots=True)
class Prequential:
    """The figures of both models on the same jobs, their comparison in pairs, and the number of fits.

    The fit at the beginning of the test part is the frozen model's and is not counted.
    """

    frozen: Figures
    weekly: Figures
    paired: PairedComparison
    fits: int
    days: float


def prequential(question: EvaluationTask, every_s: int = WEEK_S) -> Prequential:
    """Judge a probability with the frozen and the retrained model. Raises NoDataError where it cannot be learnt."""
    weekly, fits = retrained(question, every_s)
    answers = [said(learnt, question) for learnt in (question.learnt, weekly)]
    figures = [judge(question, answer) for answer in answers]
    rows, table = question.test, question.table
    values = [np.asarray(answer.values, dtype=np.float64) for answer in answers]
    paired = compare(question.y[rows], values[0], values[1], table.user.codes[rows])
    submitted = table.submit[question.split.test]
    return Prequential(figures[0], figures[1], paired, fits, float(submitted[-1] - submitted[0]) / DAY_S)


def retrained(question: EvaluationTask, every_s: int = WEEK_S) -> tuple[FittedModel, int]:
    """Return the frozen model with new trees from each later week on, and the number of fits for that."""
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
    """Return the first row of each period after the first one; periods without submissions have none."""
    number = (submitted - submitted[0]) // every_s
    return (np.flatnonzero(np.diff(number)) + 1).tolist()
