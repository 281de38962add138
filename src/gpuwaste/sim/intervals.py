"""How far a figure moves with chance: over the seeds of a simulation, and over blocks of a trace drawn again.

Both sides of a difference are of the same draw: week by week the same jobs were submitted, so what is drawn is the
pair (a block bootstrap: Künsch, 1989). Blocks are weeks, or days where the trace has fewer than MIN_BLOCKS weeks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpuwaste.core.units import DAY_S, WEEK_S
from gpuwaste.sim.document import Delta, Difference, SeedFigure, Seeds, SimulationDocument, spread
from gpuwaste.sim.trace import Ints

Floats = NDArray[np.float64]
Interval = tuple[float, float] | None
MIN_BLOCKS: Final = 4
MAX_BLOCKS: Final = 1040  # twenty years of weeks; of a longer trace several weeks are one block
DRAWS: Final = 400
_SEED: Final = 1
_ENDS: Final = (2.5, 97.5)
_BINS: Final = 1024  # values among which a quantile is searched; a draw of a quantile is one of them
DIGITS: Final = 6
FIGURES: Final = ("mean_wait_s", "p50_wait_s", "p95_wait_s", "mean_bounded_slowdown", "utilization", "makespan_s")
Runs = Mapping[str, Mapping[str, SeedFigure]]


@dataclass(frozen=True)
class Blocks:
    """Blocks of `length_s` from `origin` on, as many as the submissions need; no interval where there are too few."""

    origin: int
    length_s: int
    count: int

    @classmethod
    def of(cls, submit: Ints) -> "Blocks":
        """Return the blocks of submissions [n], n >= 1, seconds in order of time."""
        origin, last = int(submit[0]), int(submit[-1])
        length = WEEK_S if (last - origin) // WEEK_S + 1 >= MIN_BLOCKS else DAY_S
        length *= -(-(last - origin + 1) // (length * MAX_BLOCKS))
        return cls(origin, length, (last - origin) // length + 1)

    @property
    def text(self) -> str:
        """The blocks in words: 12 weeks."""
        if self.length_s > WEEK_S:
            return f"{self.count} blocks of {self.length_s // WEEK_S} weeks"
        return f"{self.count} {'week' if self.length_s == WEEK_S else 'day'}{'' if self.count == 1 else 's'}"

    def places(self, instants: Ints) -> NDArray[np.intp]:
        """Return the block of each instant [n]."""
        return np.clip((instants - self.origin) // self.length_s, 0, self.count - 1).astype(np.intp)

    @cached_property
    def draws(self) -> Floats:
        """How often each draw takes each block [DRAWS, count]; equal blocks give equal draws."""
        return drawn(self.count)

    @property
    def enough(self) -> bool:
        """Whether there are enough blocks for an interval."""
        return self.count >= MIN_BLOCKS


def drawn(count: int) -> Floats:
    """Return how often each of DRAWS draws takes each of `count` blocks."""
    drawing = np.random.default_rng(_SEED)
    found: Floats = drawing.multinomial(count, np.full(count, 1 / count), size=DRAWS).astype(np.float64)
    return found


def interval(values: Floats) -> Interval:
    """Return the 95 % interval of the draws [DRAWS]; None where more than half of them have nothing in them."""
    known = values[np.isfinite(values)]
    if len(known) * 2 < DRAWS:
        return None
    low, high = np.percentile(known, _ENDS)
    return float(low), float(high)


def ratios(draws: Floats, above: Floats, below: Floats) -> Floats:
    """Return for each draw the sum over blocks of `above` [count] by that of `below`; NaN where that is 0."""
    bottom = draws @ below
    found: Floats = np.divide(draws @ above, bottom, out=np.full(len(draws), np.nan), where=bottom > 0)
    return found


def quantiles(blocks: Blocks, places: NDArray[np.intp], values: Floats, level: float) -> Floats:
    """Return for each draw the quantile of the values [n] of its blocks.

    Values are counted in at most _BINS bins between their own quantiles, each of which counts as its upper edge.
    """
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS), method="inverted_cdf"))
    bins = np.searchsorted(edges, values, side="left")
    counts = np.bincount(places * len(edges) + bins, minlength=blocks.count * len(edges))
    heights = np.cumsum(blocks.draws @ counts.reshape(blocks.count, len(edges)).astype(np.float64), axis=1)
    whole = heights[:, -1]
    found: Floats = np.where(whole > 0, edges[np.argmax(heights >= level * whole[:, None], axis=1)], np.nan)
    return found


def with_seeds(documents: Sequence[SimulationDocument], drawn: Sequence[str]) -> SimulationDocument:
    """Return the first of the documents, one for each seed and at least one, with the figures over all of them."""
    first, seeds = documents[0], Seeds(seeds=list(range(len(documents))), drawn=list(drawn))
    if len(documents) == 1:
        return replace(first, seeds=seeds)
    by_name: dict[str, list[Difference]] = {}
    for document in documents:
        for one in document.differences:
            by_name.setdefault(_run(one), []).append(one)
    differences = [replace(one, over_seeds=_deltas(by_name[_run(one)])) for one in first.differences]
    runs = {
        name: {
            figure: _figure([float(getattr(each.schedulers[name], figure)) for each in documents]) for figure in FIGURES
        }
        for name in first.schedulers
    }
    for name, found in by_name.items():
        if name not in runs:
            runs[name] = {
                figure: _figure([one.figures[figure].changed for one in found])
                for figure in FIGURES
                if all(figure in one.figures for one in found)
            }
    return replace(first, seeds=replace(seeds, runs=runs), differences=differences)


def paired(before: Seeds, after: Seeds, first: str, second: str) -> dict[str, Delta]:
    """Return the differences of two runs of two simulations over their seeds; none where these are not the same."""
    left, right = before.runs.get(first, {}), after.runs.get(second, {})
    if before.seeds != after.seeds:
        return {}
    return {
        figure: _delta(left[figure].values, right[figure].values)
        for figure in left.keys() & right.keys()
        if len(left[figure].values) == len(right[figure].values)
    }


def _run(difference: Difference) -> str:
    """Return the name of the run that a difference compares with its base, as in Counterfactual.runs."""
    same = difference.change == difference.scheduler
    return difference.change if same else f"{difference.change}:{difference.scheduler}"


def _deltas(found: Sequence[Difference]) -> dict[str, Delta]:
    return {
        figure: _delta([one.figures[figure].base for one in found], [one.figures[figure].changed for one in found])
        for figure in found[0].figures
        if all(figure in one.figures for one in found)
    }


def _delta(before: Sequence[float], after: Sequence[float]) -> Delta:
    """Return the means and the interval of the mean difference of pairs [n >= 1]."""
    base, changed = _figure(before), _figure(after)
    ends = _figure([right - left for left, right in zip(before, after, strict=True)])
    return Delta(base=base.mean, changed=changed.mean, difference=ends.mean, low=ends.low, high=ends.high)


def _figure(values: Sequence[float]) -> SeedFigure:
    found = spread(values, DIGITS)
    if found is None:
        raise ValueError("no seed")
    kept = [round(value, DIGITS) for value in values]
    return SeedFigure(mean=found.mean, low=found.low, high=found.high, deviation=found.deviation, values=kept)
