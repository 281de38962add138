"""Two models on the same jobs: a paired bootstrap over users says how sure it is that the second one is better.

Both are judged on every draw, so what makes a draw of users easy or hard is the same for both and cancels out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.curve import Curve
from gpuwaste.advice.predict.user_draws import drawn_weights
from gpuwaste.jobs.history.table import Floats

REPEATS: Final = 400
_NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class PairedFigure:
    """One metric of both, and the second minus the first: its value, its interval of 95 %, and each draw's.

    NaN where the rows do not allow the metric; draws without it are left out.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    draws: NDArray[np.float64]

    def share_above(self, margin: float) -> float:
        """Return the share of the draws in which the second is above the first by more than a margin; 0 without any."""
        return float((self.draws > margin).mean()) if len(self.draws) else 0.0

    def share_below(self, margin: float) -> float:
        """Return the share of the draws in which the second is below the first by more than a margin; 0 without any."""
        return float((self.draws < -margin).mean()) if len(self.draws) else 0.0


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Two models' probabilities of one target on the same jobs: the ranking, and the mean squared error (Brier).

    `drawn` is the number of draws, those included that have no average precision.
    """

    jobs: int
    users: int
    positives: int
    average_precision: PairedFigure
    brier: PairedFigure
    drawn: int


def compare(
    y: Floats,
    first: Floats,
    second: Floats,
    users: NDArray[np.integer],
    *,
    repeats: int = REPEATS,
    seed: int = 1,
) -> PairedComparison:
    """Compare two columns of probabilities with what came true (0 or 1); `users` are numbers of the jobs' users."""
    if not len(y):
        empty = PairedFigure(_NAN, _NAN, _NAN, _NAN, _NAN, np.empty(0))
        return PairedComparison(0, 0, 0, empty, empty, repeats)
    curves, losses = (Curve(y, first), Curve(y, second)), ((first - y) ** 2, (second - y) ** 2)
    precision = [curve.average_precision for curve in curves]
    brier = [_mean_of(loss) for loss in losses]
    weights = list(drawn_weights(users, repeats, seed))
    found = len(np.unique(users))
    return PairedComparison(
        len(y), found, int(y.sum()), _paired(precision, weights, len(y)), _paired(brier, weights, len(y)), repeats
    )


def _paired(
    metrics: Sequence[Callable[[Floats], float]], weights: list[NDArray[np.float64]], rows: int
) -> PairedFigure:
    ones = np.ones(rows)
    first, second = (metric(ones) for metric in metrics)
    draws = np.array([metrics[1](weight) - metrics[0](weight) for weight in weights])
    draws = draws[np.isfinite(draws)]
    low, high = np.percentile(draws, (2.5, 97.5)) if len(draws) else (_NAN, _NAN)
    return PairedFigure(first, second, second - first, float(low), float(high), draws)


def _mean_of(loss: Floats) -> Callable[[Floats], float]:
    return lambda weight: float(np.average(loss, weights=weight))
