"""Randomisation inference over units and weeks: an effect, and an interval that holds at each weekly look.

A unit's outcome of a week differs from an outcome without the campaign by one number, the effect. If that number is
right, the outcomes without the campaign are known for all units, and the assignment that was drawn is one of all that
could have been drawn (Fisher 1935; Imbens and Rubin 2015, chapter 5). An effect is rejected where the drawn assignment
is among the most extreme of them. The interval has the effects that no look so far has rejected: the error is spent
over the looks (Kim and DeMets 1987), with boundaries from the joint distribution over re-drawn assignments, so the
interval may be read each week, and the campaign be stopped at any time.

Nothing is assumed about the distribution of outcomes: a unit with half of all GPU-hours only widens the interval.
Units are re-drawn with all of their weeks, so weeks of one unit may depend on each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

LEVEL: Final = 0.05
DRAWS: Final = 1999
_POWER: Final = 2.0  # of the spending function: early looks spend little
_SEED: Final = 1
_BISECTIONS: Final = 20
_ROWS: Final = 250  # assignments at a time, for the memory of thousands of units
_Z: Final = 1.959964 + 0.841621  # two-sided error of 5 %, power of 80 % (Cohen 1988)

Floats: TypeAlias = npt.NDArray[np.float64]
Whole: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Panel:
    """Outcomes by unit and week, units x weeks, as they are where the effect is x: `base` + x `slope`.

    `notified_from` is the first week in which each unit is notified, the number of weeks for never. `before` are
    covariates of each unit from the time before the campaign, units x covariates. `known` are the weeks that have data.
    """

    base: Floats
    slope: Floats
    notified_from: Whole
    before: Floats
    known: npt.NDArray[np.bool_]


def exposed(notified_from: Whole, weeks: int) -> Floats:
    """Return 1 for each unit and week in which it is notified, else 0: units x weeks."""
    return (notified_from[:, None] <= np.arange(weeks)).astype(float)


def adjusted(values: Floats, before: Floats) -> Floats:
    """Return values, units x weeks, without what the covariates explain (CUPED, Deng et al. 2013), each week's mean 0.

    The regression is over all units, notified or not: under the tested effect their outcomes are alike.
    """
    design = np.column_stack([np.ones(len(values)), before])
    found: Floats = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return found


@dataclass(frozen=True, slots=True)
class Paths:
    """The test statistic by assignment and look: `base` + x `slope`; the first row is the assignment that was drawn."""

    base: Floats
    slope: Floats
    spent: Floats
    """Share of the error that may be spent by each look."""

    def at(self, effect: float, looks: int) -> Floats:
        """Return the statistic of the first looks where the effect is `effect`."""
        return self.base[:, :looks] + effect * self.slope[:, :looks]


def paths(panel: Panel, planned: int, draws: int = DRAWS, seed: int = _SEED) -> Paths:
    """Return the statistic of the drawn assignment and of `draws` others; `planned` is the campaign's weeks.

    The statistic of a look is the sum over its weeks and units of the adjusted outcome, times how much more than the
    mean the unit is notified in that week.
    """
    weeks = panel.base.shape[1]
    rng = np.random.default_rng(seed)
    drawn = panel.notified_from.astype(np.int16)
    base, slope = adjusted(panel.base, panel.before), adjusted(panel.slope, panel.before)
    found = np.zeros((2, draws + 1, weeks))
    for first in range(0, draws + 1, _ROWS):
        rows = min(_ROWS, draws + 1 - first)
        notified = rng.permuted(np.tile(drawn, (rows, 1)), axis=1)
        if first == 0:
            notified[0] = drawn
        for week in np.flatnonzero(panel.known[:weeks]):
            weight = (notified <= week).astype(float)
            weight -= weight[:1].mean()
            found[0, first : first + rows, week] = weight @ base[:, week]
            found[1, first : first + rows, week] = weight @ slope[:, week]
    found = found.cumsum(axis=2)
    spent = LEVEL * (np.arange(1, weeks + 1) / max(planned, weeks)) ** _POWER
    return Paths(found[0], found[1], spent)


def rejected(statistic: Floats, spent: Floats) -> int | None:
    """Return the first look whose statistic is too large for the drawn assignment (row 0), None for none.

    `spent` is the share of assignments that may be rejected by each look. Ties are resolved against rejection.
    """
    alive = np.ones(len(statistic), dtype=bool)
    for look in range(statistic.shape[1]):
        room = int(spent[look] * len(statistic) + 1e-9) - int((~alive).sum())
        if room <= 0:
            continue
        values = np.where(alive, statistic[:, look], -np.inf)
        bound = np.partition(values, len(values) - room)[len(values) - room]
        crossing = values >= bound
        if crossing.sum() > room:  # a tie at the bound
            crossing = values > bound
        if crossing[0]:
            return look
        alive &= ~crossing
    return None


def holds(found: Paths, effect: float, looks: int) -> bool:
    """Return whether no look has rejected an effect, as too small or too large, each at half of the level."""
    statistic, spent = found.at(effect, looks), found.spent[:looks] / 2
    return rejected(statistic, spent) is None and rejected(-statistic, spent) is None


def estimate(found: Paths, looks: int) -> float | None:
    """Return the effect at which the statistic is 0, its mean over all assignments; None where nobody was notified."""
    slope = float(found.slope[0, looks - 1])
    return -float(found.base[0, looks - 1]) / slope if slope else None


def interval(found: Paths, looks: int, grid: Floats) -> tuple[float | None, float | None] | None:
    """Return the smallest and the largest effect that hold, each None beyond the ends of `grid`; None where none does.

    `grid` are increasing effects to try, with the estimate among them.
    """
    held = [bool(holds(found, effect, looks)) for effect in grid]
    if not any(held):
        return None
    first, last = held.index(True), len(held) - 1 - held[::-1].index(True)

    def edge(inside: float, outside: float) -> float:
        return _edge(lambda effect: holds(found, effect, looks), inside, outside)

    low = None if first == 0 else edge(grid[first], grid[first - 1])
    high = None if last == len(grid) - 1 else edge(grid[last], grid[last + 1])
    return low, high


def _edge(inside_is: Callable[[float], bool], inside: float, outside: float) -> float:
    for _ in range(_BISECTIONS):
        middle = (inside + outside) / 2
        if inside_is(middle):
            inside = middle
        else:
            outside = middle
    return float(inside)


def smallest_shift(residuals: Floats, notified_from: Whole, weeks: int, mean: float) -> float | None:
    """Return the smallest relative change of an outcome that `weeks` weeks show with a power of 80 %; None: none.

    `residuals` are adjusted outcomes of weeks without the campaign, units x weeks, `mean` is the outcome's mean. Their
    variance is divided into that of units and that of weeks; the statistic's variance follows from the assignment.
    """
    count = residuals.shape[1]
    if count < 2 or not mean > 0:  # noqa: PLR2004 a variance within units needs two weeks
        return None
    within = float(residuals.var(axis=1, ddof=1).mean())
    between = max(0.0, float(residuals.mean(axis=1).var(ddof=1)) - within / count)
    notified = exposed(notified_from, weeks)
    notified -= notified.mean(axis=0)
    signal = mean * float((notified**2).sum())
    if not signal:
        return None
    noise = between * float((notified.sum(axis=1) ** 2).sum()) + within * float((notified**2).sum())
    return _Z * float(np.sqrt(noise)) / signal


def grid_around(middle: float | None, low: float, high: float, count: int = 60) -> Floats:
    """Return `count` effects from `low` to `high`, denser in the middle, and the estimate."""
    spaced: Any = np.concatenate([np.linspace(low, high, count // 2), np.geomspace(1e-3, high - low, count // 2) + low])
    if middle is not None and low < middle < high:
        spaced = np.append(spaced, middle)
    return np.unique(spaced)
