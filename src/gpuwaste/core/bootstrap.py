"""Intervals by a bootstrap over days: how far a figure moves when its days are resampled."""

import random
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Annotated, Final

from msgspec import Meta, Struct

DRAWS: Final = 400
_SEED: Final = 1
_TAIL: Final = 0.025
Block = Sequence[float]


class BootstrapSample(Struct, kw_only=True, frozen=True):
    """The values from which a figure is computed, by block of days.

    Without a quantile: the sum of the first values over the sum of the second. With one: counts by bin, and the
    upper edge of each bin.
    """

    blocks: Annotated[Sequence[Block], Meta(description="One row for each block, all of the same length.")]
    quantile: float | None = None
    edges: Sequence[float] = ()


def estimate(sample: BootstrapSample, sums: Sequence[float]) -> float | None:
    """Return the figure of the sums over blocks; None where they are empty."""
    if sample.quantile is None:
        return sums[0] / sums[1] if sums[1] else None
    heights = list(accumulate(sums))
    if not heights or not heights[-1]:
        return None
    return sample.edges[bisect_left(heights, sample.quantile * heights[-1])]


def interval(sample: BootstrapSample, value: float) -> tuple[float, float] | None:
    """Return the 95 % interval of a figure whose value is known exactly; None where there are too few days.

    A quantile of bins is coarser than the value: the interval's ends are scaled by the ratio of the two.
    """
    drawn = _draws(sample)
    if drawn is None:
        return None
    ends = drawn[_place(_TAIL)], drawn[_place(1 - _TAIL)]
    whole = estimate(sample, _sums(sample.blocks))
    if sample.quantile is None or not whole:
        return ends
    return min(ends[0] * value / whole, value), max(ends[1] * value / whole, value)


def difference(before: BootstrapSample, after: BootstrapSample) -> tuple[float, float] | None:
    """Return the 95 % interval of after - before, each resampled separately; None where there are too few days."""
    first, second = _draws(before, ordered=False), _draws(after, ordered=False, seed=_SEED + 1)
    if first is None or second is None:
        return None
    found = sorted(b - a for a, b in zip(first, second, strict=True))
    return found[_place(_TAIL)], found[_place(1 - _TAIL)]


def _draws(sample: BootstrapSample, *, ordered: bool = True, seed: int = _SEED) -> list[float] | None:
    """Return the figure of each draw, None where some draws are empty."""
    count = len(sample.blocks)
    if not count:
        return None
    blocks = sample.blocks
    found = [estimate(sample, _sums([blocks[place] for place in places])) for places in _places(count, seed)]
    values = [value for value in found if value is not None]
    if len(values) < DRAWS:
        return None
    return sorted(values) if ordered else values


def _sums(blocks: Sequence[Block]) -> list[float]:
    return list(map(sum, zip(*blocks, strict=True)))


@cache
def _places(count: int, seed: int) -> list[list[int]]:
    """Return the blocks of each draw: the same ones for every figure, so that equal data give equal bytes."""
    drawing = random.Random(seed)  # noqa: S311 not a secret
    return [drawing.choices(range(count), k=count) for _ in range(DRAWS)]


def _place(share: float) -> int:
    return min(DRAWS - 1, int(share * DRAWS))
