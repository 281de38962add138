"""The positions of bars and lines: sorted, as wide as their period, and few enough to be drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import pairwise
from typing import Final

from gpuwaste.core.units import DAY_S
from gpuwaste.show.chart import Axis, Series
from gpuwaste.show.charts.labels import figure
from gpuwaste.show.charts.scale import value_words
from gpuwaste.show.charts.svg import finite, shown
from gpuwaste.show.charts.time_axis import time_words

_SAME_PERIOD: Final = 1.5
"""A gap this many times wider than the usual one is a hole; months and days of 25 h are not."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One position from `at` to `end` with a value of each series; `count` positions merged into one."""

    at: float
    end: float
    values: Sequence[float | None]
    count: int = 1


def slots_of(at: Sequence[float], series: Sequence[Series], axis: Axis) -> list[Slot]:
    """Return the positions in order; a series that is too short is unknown after its end."""
    if axis.scale == "category":
        return [Slot(float(index), index + 1.0, _values(series, index)) for index in range(len(at))]
    order = sorted((place, index) for index, raw in enumerate(at) if (place := finite(raw)) is not None)
    ends = slot_ends([place for place, _ in order], axis)
    return [Slot(place, end, _values(series, index)) for (place, index), end in zip(order, ends, strict=True)]


def fewer(slots: Sequence[Slot], most: int) -> list[Slot]:
    """Return at most `most` slots; merged ones have the mean of the known values, so that the unit stays."""
    every = -(-len(slots) // max(1, most))
    if every <= 1:
        return list(slots)
    return [_merged(slots[index : index + every]) for index in range(0, len(slots), every)]


def names_of(at: Sequence[float], axis: Axis) -> list[str]:
    """Return the category of each position, or its number where it has none."""
    count = len(axis.categories)
    return [
        axis.categories[int(place)]
        if finite(place) is not None and 0 <= place < count
        else figure(finite(place) or 0.0)
        for place in at
    ]


def place_words(axis: Axis, zone: tzinfo, names: Sequence[str]) -> Callable[[Slot], str]:
    """Return a function that names a slot: by its category, its day or instant, or its value."""

    def words(slot: Slot) -> str:
        if axis.scale == "category":
            return names[int(slot.at)]
        if axis.scale == "time":
            days = (slot.end - slot.at) / slot.count > 0.9 * DAY_S
            begin = time_words(slot.at, zone, days)
            return begin if slot.count == 1 else f"from {begin}, mean of {slot.count}"
        text = value_words(slot.at, axis.unit)
        return text if slot.count == 1 else f"from {text}, mean of {slot.count}"

    return words


def column_words(column: float | str, axis: Axis, zone: tzinfo) -> str:
    """Return the label of a column of a grid: its name, its instant, or its value."""
    if isinstance(column, str):
        return shown(column, 60)
    value = finite(column)
    return time_words(value, zone) if axis.scale == "time" and value is not None else value_words(value, axis.unit)


def slot_words(place: str, series: Sequence[Series], values: Sequence[float | None], unit: str) -> str:
    """Return the tooltip of a slot: each series with its value and unit."""
    lines = [f"{shown(one.name, 60)}: {value_words(value, unit)}" for one, value in zip(series, values, strict=True)]
    return "\n".join([shown(place, 80), *lines])


def summary(slots: Sequence[Slot], series: Sequence[Series], unit: str, words: Callable[[Slot], str]) -> str:
    """Return the largest value and its position, for readers who cannot see the chart."""
    best: tuple[float, int, Slot] | None = None
    for slot in slots:
        for index, value in enumerate(slot.values):
            if value is not None and (best is None or value > best[0]):
                best = (value, index, slot)
    if best is None:
        return "No value is known."
    place = shown(words(best[2]), 80)
    return f"The largest value is {value_words(best[0], unit)}: {shown(series[best[1]].name, 60)}, {place}."


def slot_ends(places: Sequence[float], axis: Axis) -> list[float]:
    """Return the end of each position: where the next begins, or after the usual period before a hole."""
    gaps = [after - before for before, after in pairwise(places) if after > before]
    usual = sorted(gaps)[len(gaps) // 2] if gaps else (DAY_S if axis.scale == "time" else 1.0)
    ends = []
    for index, place in enumerate(places):
        gap = places[index + 1] - place if index + 1 < len(places) else usual
        ends.append(place + (gap if 0 < gap <= usual * _SAME_PERIOD else usual))
    return ends


def _values(series: Sequence[Series], index: int) -> list[float | None]:
    return [finite(one.y[index]) if index < len(one.y) else None for one in series]


def _merged(slots: Sequence[Slot]) -> Slot:
    columns = zip(*(slot.values for slot in slots), strict=True)
    known = [[value for value in column if value is not None] for column in columns]
    return Slot(
        slots[0].at, slots[-1].end, [sum(column) / len(column) if column else None for column in known], len(slots)
    )
