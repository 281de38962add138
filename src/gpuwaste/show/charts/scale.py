"""From a value to a position on an axis, and the positions of ticks: linear, log, and the edges of bins.

Not a library, because those that choose ticks also draw: each needs NumPy, pandas or SciPy on the hub.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from sys import float_info
from typing import Final, Protocol

from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S, say_duration
from gpuwaste.show.charts.labels import figure, tick_figure

_ROUND: Final = (1, 2, 5, 10)
_DURATIONS_S: Final = (
    *(1, 2, 5, 10, 15, 30, MINUTE_S, 2 * MINUTE_S, 5 * MINUTE_S, 10 * MINUTE_S, 15 * MINUTE_S, 30 * MINUTE_S),
    *(HOUR_S, 2 * HOUR_S, 4 * HOUR_S, 6 * HOUR_S, 12 * HOUR_S, DAY_S, 2 * DAY_S, 5 * DAY_S, 10 * DAY_S, 30 * DAY_S),
)
_LOG_DURATIONS_S: Final = (
    *(1e-3, 1e-2, 0.1, 1, 10, MINUTE_S, 10 * MINUTE_S, HOUR_S, 6 * HOUR_S, DAY_S, 5 * DAY_S, 30 * DAY_S, 365 * DAY_S),
)
_COUNTED: Final = frozenset({"jobs", "steps", "users"})
"""Units whose ticks are whole numbers."""
_LONGEST_S: Final = 1e12
"""Longer durations are not printed in days."""
_FEW: Final = 4
_ZERO_PART: Final = 0.05
"""The part of a log axis that is reserved for 0."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled value of an axis."""

    value: float
    text: str


class Scale(Protocol):
    """The mapping of values to positions on an axis."""

    def at(self, value: float) -> float:
        """Return the position of a value, from 0 to 1."""

    def ticks(self, most: int) -> list[Tick]:
        """Return at most about `most` ticks, in order; never an unbounded number."""


def value_words(value: float | None, unit: str) -> str:
    """Print a value with its unit; seconds as readable duration, None as "not known"."""
    if value is None:
        return "not known"
    if unit == "s" and 1 <= abs(value) < _LONGEST_S:
        return f"{'-' if value < 0 else ''}{say_duration(abs(value))}"
    return f"{figure(value)} {unit}".rstrip()


def step_of(span: float, most: int, unit: str = "") -> float:
    """Return the smallest round step that divides `span` in at most `most` parts."""
    least = max(span / max(1, most), float_info.min)  # a span of subnormal numbers has no parts
    if unit == "s" and span >= MINUTE_S and least <= _DURATIONS_S[-1]:
        return next(step for step in _DURATIONS_S if step >= least)
    if unit in _COUNTED:
        least = max(least, 1.0)
    power = 10.0 ** floor(log10(least))
    return next((power * digit for digit in _ROUND if power * digit >= least * 0.999999), power * 10)


@dataclass(frozen=True, slots=True)
class Linear:
    """Equal steps."""

    low: float
    high: float
    unit: str = ""

    @classmethod
    def round(cls, low: float, high: float, unit: str, most: int = 5) -> "Linear":
        """Return a scale that starts and ends at a tick."""
        if high <= low:
            high = low + (abs(low) or 1.0)
        step = step_of(high - low, most, unit)
        return cls(floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, unit)

    def at(self, value: float) -> float:
        """Return the position of a value; values outside are at the end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low))) if self.high > self.low else 0.5

    def ticks(self, most: int) -> list[Tick]:
        """Return ticks at round values."""
        if self.high <= self.low:
            return [Tick(self.low, _tick_words(self.low, self.unit))]
        step = step_of(self.high - self.low, most, self.unit)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        values = [step * index for index in range(first, min(last, first + 4 * max(1, most)) + 1)]
        return [Tick(value, _tick_words(value, self.unit)) for value in values]


@dataclass(frozen=True, slots=True)
class LogScale:
    """Equal factors; values of 0 and below are at a separate position at the start."""

    low: float
    high: float
    unit: str = ""
    zero: bool = False

    @classmethod
    def of(cls, values: Sequence[float], unit: str) -> "LogScale":
        """Return the scale of these values."""
        positive = [value for value in values if value > 0]
        low, high = (min(positive), max(positive)) if positive else (1.0, 10.0)
        if high / low < 10:  # noqa: PLR2004 less than a decade is shown as one
            low, high = 10.0 ** floor(log10(low)), max(high, 10.0 ** (floor(log10(low)) + 1))
        return cls(low, high, unit, len(positive) < len(values))

    def at(self, value: float) -> float:
        """Return the position of a value."""
        start = _ZERO_PART if self.zero else 0.0
        if value <= 0:
            return 0.0
        part = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return start + (1 - start) * min(1.0, max(0.0, part))

    def ticks(self, most: int) -> list[Tick]:
        """Return ticks at powers of ten, with 2 and 5 between if there is room; for durations at round ones."""
        values = [value for value in self._candidates(most) if self.low * 0.999 <= value <= self.high * 1.001]
        every = max(1, ceil(len(values) / max(1, most)))
        found = [Tick(value, _tick_words(value, self.unit)) for value in values[::every]]
        return [Tick(0.0, "0"), *found] if self.zero else found

    def _candidates(self, most: int) -> Sequence[float]:
        if self.unit == "s":
            few = sum(self.low <= value <= self.high for value in _LOG_DURATIONS_S) < _FEW <= most
            return _DURATIONS_S if few else _LOG_DURATIONS_S
        first, last = floor(log10(self.low)), ceil(log10(self.high))
        digits = (1, 2, 5) if (last - first) * 3 <= most else (1,)
        return [digit * 10.0**power for power in range(first, last + 1) for digit in digits]


@dataclass(frozen=True, slots=True)
class EdgeScale:
    """Cells of equal size for any edges; a value between two edges is placed inside their cell."""

    edges: Sequence[float]
    inner: Scale

    def at(self, value: float) -> float:
        """Return the position of a value."""
        cells = len(self.edges) - 1
        index = min(cells - 1, max(0, bisect_right(self.edges, value) - 1))
        begin, end = self.inner.at(self.edges[index]), self.inner.at(self.edges[index + 1])
        inside = (self.inner.at(value) - begin) / (end - begin) if end > begin else 0.0
        return (index + min(1.0, max(0.0, inside))) / cells

    def ticks(self, most: int) -> list[Tick]:
        """Return the ticks of the inner scale."""
        return self.inner.ticks(most)


def _tick_words(value: float, unit: str) -> str:
    if unit != "s" or not value:
        return tick_figure(value)
    for unit_s, text in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
        if abs(value) >= unit_s and value % unit_s == 0:
            return f"{tick_figure(value / unit_s)} {text}"
    return f"{tick_figure(value)} s"
