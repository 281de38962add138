"""A method: one file of `methods`, found by being there.

The file has TITLE (how tables name it), ORDER (its place in them), `supports(target)` and `answer(question)`. With
AFTER_RUN = True it uses facts that are known only after the run, and is shown in a column of its own, only when asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.advice.predict.targets import Target
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.jobs.history.table import Floats
from gpuwaste.models.evaluate import methods
from gpuwaste.models.evaluate.task import EvaluationTask

OURS: Final = "model"


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
