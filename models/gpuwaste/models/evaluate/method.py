"""A method: one file in the folder `methods`, and the task that it answers: one target, on one log.

The file has TITLE (its name in tables), ORDER (its place in them), `supports(target)` and `answer(question)`. With
AFTER_RUN = True it uses facts that are known only after the run, and is shown in a separate column, only on request.

Our model is the one that a site would have on the day that the test part begins. Trees are fitted twice: on the first
part, whose validation rows give calibration, thresholds and the first shifts, and then on both parts without choosing
anything else, because the newest jobs are most informative. The rolling correction starts with the first fit's errors
on the validation rows, which it had not seen, and continues with the second fit through the test part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.bundle import our_features
from gpuwaste.advice.predict.rolling import SUBMIT, busy_users, roll, told
from gpuwaste.advice.predict.targets import Target, labels
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.jobs.history.job_table import Floats, JobTable
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.models.evaluate import methods
from gpuwaste.models.target_fit import DEFAULTS, Fitted, Recipe, fit
from gpuwaste.models.training_rows import HistorySplit, Rows, known_before

NO_STATUS = "the log has no status: walltime only"
_NEEDS_STATUS = frozenset({"failure", "failure_or_cancel", "timeout"})
OURS: Final = "model"
State = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FittedModel:
    """`raw` is float32 [n, 1 or q] from the validation part on (before it NaN); `fitted` is the first fit."""

    fitted: Fitted
    raw: NDArray[np.float32]
    begin: int  # the first row of the validation part

    def values(self, table: JobTable, busy: NDArray[np.bool_]) -> Floats:
        """Return probabilities [n], or quantiles [n, q] in the target's unit, under the rolling correction.

        `busy` [n] is the result of rolling.busy_users for the vectors.
        """
        scored = np.arange(len(table)) >= self.begin
        return roll(table, self.fitted.model, self.raw, scored=scored, busy=busy).values


@dataclass(eq=False)
class EvaluationTask:
    """One target of a log of n jobs; `vectors` is float32 [n, F], NaN for unknown.

    `y` is [n] labels in the target's unit, NaN if missing. A method may use the label of a row only if that row is in
    `learn` or `validate`, or had ended before the submission of the judged row.
    """

    target: Target
    table: JobTable
    vectors: NDArray[np.float32]
    split: HistorySplit
    seed: int = 1
    threads: int = 2
    trials: int = 0

    @cached_property
    def y(self) -> Floats:
        """Labels; see `truth`."""
        return truth(self.target.name, self.table)

    @cached_property
    def busy(self) -> NDArray[np.bool_]:
        """Whether each row's user had other jobs in the system: the correction has a separate window for these."""
        return busy_users(self.vectors, our_features().names)

    @cached_property
    def learn(self) -> Rows:
        """Rows of the first part with a label."""
        return self._labelled(self.split.train)

    @cached_property
    def validate(self) -> Rows:
        """Rows of the second part with a label."""
        return self._labelled(self.split.validation)

    @cached_property
    def test(self) -> Rows:
        """Rows of the last part with a label: every method is judged on these."""
        return self._labelled(self.split.test)

    @cached_property
    def learnt(self) -> FittedModel:
        """Our model, fitted once for all methods that use it. Raises NoDataError."""
        return self.learn_on(self.vectors)

    @cached_property
    def recipe(self) -> Recipe:
        """How trees are grown: the default, or a better recipe found by `trials` on folds of the first part."""
        if not self.trials:
            return DEFAULTS[self.target.kind]
        from gpuwaste.models.parameter_search import search  # noqa: PLC0415 Optuna is slow to load

        own: dict[str, Any] = {"trials": self.trials, "seed": self.seed, "threads": self.threads}
        return search(self.target, self.table, self.vectors, self.split.train, **own).recipe

    def learn_on(self, vectors: NDArray[np.float32]) -> FittedModel:
        """Fit the same trees on other columns. Raises NoDataError."""
        own: dict[str, Any] = {"recipe": self.recipe, "seed": self.seed, "threads": self.threads}
        return learn(self.target, self.table, vectors, self.split, **own)

    def _labelled(self, rows: Rows) -> Rows:
        return rows[np.isfinite(self.y[rows])]


def truth(target: str, table: JobTable) -> Floats:
    """Return each row's label in the target's unit; all NaN for outcomes of a log without any status."""
    if target in _NEEDS_STATUS and not has_status(table):
        return np.full(len(table), np.nan)
    return labels(target, table)


def has_status(table: JobTable) -> bool:
    """Return whether the end of any job is known to be good or bad."""
    return bool(np.isin(table.outcome, (Outcome.UNKNOWN, Outcome.NEVER_STARTED), invert=True).any())


def learn(
    target: Target,
    table: JobTable,
    vectors: NDArray[np.float32],
    split: HistorySplit,
    *,
    recipe: Recipe | None = None,
    seed: int = 1,
    threads: int = 2,
) -> FittedModel:
    """Fit one target. Raises NoDataError with the reason where it cannot be learnt."""
    test = int(split.test[0])
    begin = int(split.validation[0]) if len(split.validation) else test
    first = fit(target, table, vectors, split.train, split.validation, recipe=recipe, seed=seed, threads=threads)
    nothing: Rows = np.empty(0, dtype=np.intp)
    known = known_before(table, np.arange(test), int(table.submit[test]))
    second = fit(target, table, vectors, known, nothing, recipe=recipe, seed=seed, threads=threads)
    raw = np.full((len(table), len(first.boosters)), np.nan, dtype=np.float32)
    raw[begin:test] = first.raw(vectors[begin:test])
    raw[test:] = second.raw(vectors[test:])
    return FittedModel(first, raw, begin)


@dataclass(frozen=True, slots=True)
class MethodAnswer:
    """A method's prediction for each test row: [m] probabilities, or [m, k] limits in the target's unit, inf for none.

    From the probability `threshold` on it predicts yes, never chosen by test rows; `reject` is the same for the narrow
    operating point, NaN where validation gave none. `levels` are the quantiles of the k limits; empty: there is one
    limit, without a target level.
    """

    values: Floats
    threshold: float = 0.5
    reject: float = float("nan")
    levels: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """A method as declared by its file; `name` is the file's."""

    name: str
    title: str
    order: int
    after_run: bool
    supports: Callable[[Target], bool]
    answer: Callable[[EvaluationTask], MethodAnswer]


def all_methods(*, after_run: bool = False) -> list[Method]:
    """Return the methods in the order of the tables; those that use facts known after the run only on request."""
    found = ModuleRegistry[Any](methods, "TITLE", "ORDER", "supports", "answer").ordered_by("ORDER")
    loaded = (
        Method(name, m.TITLE, m.ORDER, bool(getattr(m, "AFTER_RUN", False)), m.supports, m.answer)
        for name, m in found.items()
    )
    return [method for method in loaded if after_run or not method.after_run]


def by_user(table: JobTable, y: Floats, empty: State, after: Callable[[State, float], State]) -> NDArray[np.float64]:
    """Return [n, len(empty)]: the state of each row's user at its submission.

    A user starts with `empty`; `after(state, label)` is the state after the end of a job with that label.
    """
    states: dict[int, State] = {}
    found = np.empty((len(table), len(empty)))
    users, labels = table.user.codes.tolist(), y.tolist()
    for kind, row in told(table, np.arange(len(table)), y):
        user = users[row]
        state = states.get(user, empty)
        if kind == SUBMIT:
            found[row] = state
        else:
            states[user] = after(state, labels[row])
    return found
