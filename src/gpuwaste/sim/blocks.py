"""Intervals by a bootstrap over blocks of time: how far a figure moves when the weeks of a trace are drawn again.

Both sides of a difference are of the same draw: week by week the same jobs were submitted, so what is drawn is the
pair (a block bootstrap: Künsch, 1989). Blocks are weeks, or days where the trace has fewer than MIN_BLOCKS weeks.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.units import DAY_S, WEEK_S
from gpuwaste.sim.trace import Ints

Floats = NDArray[np.float64]
Interval = tuple[float, float] | None
MIN_BLOCKS: Final = 4
MAX_BLOCKS: Final = 1040  # twenty years of weeks; of a longer trace several weeks are one block
DRAWS: Final = 400
_SEED: Final = 1
_ENDS: Final = (2.5, 97.5)
_BINS: Final = 1024  # values that a quantile is looked for among; a draw of a quantile is one of them


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
    """Return of each draw the sum over blocks of `above` [count] by that of `below`; NaN where that is 0."""
    bottom = draws @ below
    found: Floats = np.divide(draws @ above, bottom, out=np.full(len(draws), np.nan), where=bottom > 0)
    return found


def quantiles(blocks: Blocks, places: NDArray[np.intp], values: Floats, level: float) -> Floats:
    """Return of each draw the quantile of the values [n] that its blocks have.

    Values are counted in at most _BINS bins between their own quantiles, of which each stands for its upper edge.
    """
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS), method="inverted_cdf"))
    bins = np.searchsorted(edges, values, side="left")
    counts = np.bincount(places * len(edges) + bins, minlength=blocks.count * len(edges))
    heights = np.cumsum(blocks.draws @ counts.reshape(blocks.count, len(edges)).astype(np.float64), axis=1)
    whole = heights[:, -1]
    found: Floats = np.where(whole > 0, edges[np.argmax(heights >= level * whole[:, None], axis=1)], np.nan)
    return found
