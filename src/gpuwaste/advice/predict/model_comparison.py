"""Two models on the same jobs: a paired bootstrap over users shows how sure it is that the second one is better.

Both are judged on every draw, each of all jobs of the drawn users, so what makes a draw easy or hard is the same for
both and cancels out. Rows are sorted once, and precision over recall is computed for many weightings of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.job_table import Floats

_UNKNOWN = float("nan")
REPEATS: Final = 400
_NAN: Final = float("nan")


class Curve:
    """Labels `y` (0 and 1) and probabilities `p` of n rows; rows of equal p are selected together.

    Equal to scikit-learn's average_precision_score and precision_recall_curve, which sort at every call.
    """

    def __init__(self, y: Floats, p: Floats) -> None:
        self._order = np.argsort(-p, kind="stable")
        self._y = y[self._order]
        self._last = np.flatnonzero(np.append(np.diff(p[self._order]) != 0, values=len(p) > 0))

    def average_precision(self, weight: Floats) -> float:
        """Return the area, stepwise; NaN if the weighted rows are of one class."""
        precision, recall = self._points(weight)
        if not len(recall):
            return _UNKNOWN
        return float((np.diff(recall, prepend=0.0) * precision).sum())

    def recall_at(self, precision: float, weight: Floats) -> float:
        """Return the largest recall at this precision or better, 0 if there is none, NaN as above."""
        found, recall = self._points(weight)
        return float(recall[found >= precision].max(initial=0.0)) if len(recall) else _UNKNOWN

    def _points(self, weight: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        w = weight[self._order]
        total, hits = np.cumsum(w)[self._last], np.cumsum(w * self._y)[self._last]
        if not len(hits) or not 0 < hits[-1] < total[-1]:
            return np.empty(0), np.empty(0)
        said = total > 0
        return hits[said] / total[said], hits[said] / hits[-1]


def drawn_weights(users: NDArray[np.integer], repeats: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Yield for each draw the weight of each row: how often its user was drawn."""
    rng = np.random.default_rng(seed)
    present, inverse = np.unique(users, return_inverse=True)
    drawn = rng.multinomial(len(present), np.full(len(present), 1 / len(present)), size=repeats)
    for counts in drawn:
        yield counts[inverse].astype(np.float64)


@dataclass(frozen=True, slots=True)
class PairedFigure:
    """One metric of both, and the second minus the first: its value, its 95 % interval, and each draw's value.

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

    `drawn` is the number of draws, including those without an average precision.
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
    """Compare two columns of probabilities with the outcomes (0 or 1); `users` are the numbers of the jobs' users."""
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
