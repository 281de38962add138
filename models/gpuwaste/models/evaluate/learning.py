"""Our model, as a site would have it on the day that the test part begins.

Trees are fitted twice: on the first part, whose validation rows give calibration, thresholds and the first shifts, and
then on both parts with nothing else chosen, because the newest jobs say most. The rolling correction starts with what
the first fit said about the validation rows, which it had not seen, and goes on with the second through the test part.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.roll import roll
from gpuwaste.advice.predict.targets import Target
from gpuwaste.jobs.history.table import Floats, JobTable
from gpuwaste.models.fit import Fitted, fit
from gpuwaste.models.recipe import Recipe
from gpuwaste.models.split import HistorySplit, Rows, known_before


@dataclass(frozen=True, slots=True)
class FittedModel:
    """`raw` is float32 [n, 1 or q] from the validation part on (before it NaN); `fitted` is the first fit."""

    fitted: Fitted
    raw: NDArray[np.float32]
    begin: int  # the first row of the validation part

    def values(self, table: JobTable, busy: NDArray[np.bool_]) -> Floats:
        """Return probabilities [n], or quantiles [n, q] in the target's unit, under the rolling correction.

        `busy` [n] is what rolling.busy_users says of the vectors.
        """
        scored = np.arange(len(table)) >= self.begin
        return roll(table, self.fitted.model, self.raw, scored=scored, busy=busy).values


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
    """Fit one target; raises NoDataError with the reason where it cannot be learnt."""
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
