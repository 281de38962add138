"""A method: one file of `methods`, found by being there; and what plain methods know of each user's earlier jobs.

The file has TITLE (how tables name it), ORDER (its place in them), `supports(target)` and `answer(question)`. With
AFTER_RUN = True it uses facts that are known only after the run, and is shown in a column of its own, only when asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.rolling import SUBMIT, told
from gpuwaste.advice.predict.targets import Target
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.jobs.history.table import Floats, JobTable
from gpuwaste.models.evaluate import methods
from gpuwaste.models.evaluate.task import EvaluationTask

OURS: Final = "model"
State = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MethodAnswer:
    """What a method says of each test row: [m] probabilities, or [m, k] limits in the target's unit, inf for none.

    `threshold` is the probability from which on it says yes, never chosen by test rows; `reject` likewise for the
    narrow operating point, NaN where validation gave none. `levels` are the quantiles that the k limits stand for;
    empty: there is one limit, and no level was aimed at.
    """

    values: Floats
    threshold: float = 0.5
    reject: float = float("nan")
    levels: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Method:
    """A method as its file declares it; `name` is the file's."""

    name: str
    title: str
    order: int
    after_run: bool
    supports: Callable[[Target], bool]
    answer: Callable[[EvaluationTask], MethodAnswer]


def all_methods(*, after_run: bool = False) -> list[Method]:
    """Return the methods in the order of the tables; those that use facts known after the run only when asked."""
    found = ModuleRegistry[Any](methods, "TITLE", "ORDER", "supports", "answer").ordered_by("ORDER")
    loaded = (
        Method(name, m.TITLE, m.ORDER, bool(getattr(m, "AFTER_RUN", False)), m.supports, m.answer)
        for name, m in found.items()
    )
    return [method for method in loaded if after_run or not method.after_run]


def by_user(table: JobTable, y: Floats, empty: State, after: Callable[[State, float], State]) -> NDArray[np.float64]:
    """Return [n, len(empty)]: each row's user's state at its submission.

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
