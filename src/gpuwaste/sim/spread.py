"""A figure of several runs: its mean with an interval, and how far the runs are from one another."""

import math
import statistics
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

# Student's t, two-sided 95 %, by degrees of freedom 1 to 30; beyond, the normal distribution's.
_T95: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL: Final = 1.960
DIGITS: Final = 3


class Spread(Struct, kw_only=True, frozen=True):
    """A figure of several runs: mean over them, its 95 % interval (Student), and their standard deviation."""

    mean: float
    low: Annotated[float | None, Meta(description="Absent with a single run.")] = None
    high: Annotated[float | None, Meta(description="Absent with a single run.")] = None
    deviation: Annotated[float | None, Meta(description="Standard deviation between runs.")] = None


def spread(values: Sequence[float], digits: int = DIGITS) -> Spread | None:
    """Return mean, interval and deviation of a figure of several runs; None without any."""
    if not values:
        return None
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Spread(mean=round(mean, digits))
    deviation = statistics.stdev(values)
    t = _T95[len(values) - 2] if len(values) - 2 < len(_T95) else _NORMAL
    half = t * deviation / math.sqrt(len(values))
    return Spread(
        mean=round(mean, digits),
        low=round(mean - half, digits),
        high=round(mean + half, digits),
        deviation=round(deviation, digits),
    )
