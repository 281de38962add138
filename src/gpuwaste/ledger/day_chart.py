"""The chart of GPU-time by day: stacked columns by level on an axis with values; days without jobs are narrow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from gpuwaste.core.units import DAY_S, GpuTimeUnit
from gpuwaste.ledger.reports.report_types import DayRow
from gpuwaste.show.charts.scale import Linear
from gpuwaste.show.page_words import day

MAX_DAYS: Final = 100
_LEVELS: Final = ("high", "moderate", "low", "idle", "unknown")
_BASE: Final = 86.0  # percent of the height; below are the names of the days
_TOP: Final = 12.0  # above are the values of the highest columns
_EMPTY: Final = 0.3  # width of a day without jobs, as a part of another day's
_EMPTY_ALL: Final = 0.5  # width of all of them, as a part of all other days'
_BAR: Final = 0.8  # width of a column in its slot
_WIDEST: Final = 10.0  # percent of the width, for a column
_APART: Final = 11.9  # percent of the width, between two labels; each of eight days has one
_TICKS: Final = 4
_HEIGHT: Final = 170  # pixels
_AXIS: Final = 56

_CHART: Final = Markup(
    '<div class="day-chart"><svg class="day-axis" width="{}" height="{}" aria-hidden="true">{}</svg>'
    '<svg class="day-bars" width="100%" height="{}" role="img" aria-label="{}">{}</svg></div>'
)
_TICK: Final = Markup('<text x="{}" y="{:.3f}%" dy="5" text-anchor="end">{}</text>')
_LINE: Final = Markup('<line class="rule" x1="0" x2="100%" y1="{0:.3f}%" y2="{0:.3f}%"/>')
_RECT: Final = Markup('<rect x="{:.3f}%" y="{:.3f}%" width="{:.3f}%" height="{:.3f}%" class="{}"/>')
_COLUMN: Final = Markup("<g><title>{}</title>{}</g>")
_DOT: Final = Markup('<circle class="mark" cx="{:.3f}%" cy="{:.3f}%" r="1.5"><title>{}</title></circle>')
_LABEL: Final = Markup('<text x="{:.3f}%" y="{:.3f}%" text-anchor="middle">{}</text>')


@dataclass(frozen=True, slots=True)
class _Day:
    """One day: its number since 1970, its row (None: no jobs), its middle and the width of its column in percent."""

    number: int
    row: DayRow | None
    middle: float
    width: float


def day_bars(rows: Sequence[DayRow], start: int, end: int, unit: GpuTimeUnit) -> Markup:
    """Return the chart of the days from `start` to `end`, UTC seconds; of a longer window the last MAX_DAYS."""
    days = _days(rows, start, end)
    most = max((one.row.gpu_s for one in days if one.row), default=0.0)
    scale = Linear.round(0.0, most / unit.seconds, unit.name, _TICKS)
    ticks = [tick for tick in scale.ticks(_TICKS) if tick.value >= 0]
    axis = [_TICK.format(_AXIS - 8, _y(scale.at(tick.value)), tick.text) for tick in ticks]
    parts = [_LINE.format(_y(scale.at(tick.value))) for tick in ticks]
    parts += [_column(one.row, one, scale, unit) if one.row else _dot(one) for one in days]
    parts += _labels(days, scale, unit)
    words = f"{unit.name} by day, at most {unit.number(most)} on one day"
    return _CHART.format(_AXIS, _HEIGHT, Markup("").join(axis), _HEIGHT, words, Markup("").join(parts))


def unknown_s(row: DayRow) -> float:
    """Return the GPU-seconds of a day that have no level."""
    return max(row.gpu_s - row.high_s - row.moderate_s - row.low_s - row.idle_s, 0.0)


def _days(rows: Sequence[DayRow], start: int, end: int) -> list[_Day]:
    """Return the days with their places: all the width is used."""
    last = (end - 1) // DAY_S
    numbers = range(max(start // DAY_S, last - MAX_DAYS + 1), last + 1)
    by_day = {row.day // DAY_S: row for row in rows if row.gpu_s}
    busy = sum(number in by_day for number in numbers)
    empty = min(_EMPTY, _EMPTY_ALL * busy / max(1, len(numbers) - busy)) if busy else _EMPTY
    slots = [1.0 if number in by_day else empty for number in numbers]
    scale, at, found = 100 / max(sum(slots), 1.0), 0.0, []
    width = min(_WIDEST, _BAR * scale)
    for number, slot in zip(numbers, slots, strict=True):
        found.append(_Day(number, by_day.get(number), (at + slot / 2) * scale, width))
        at += slot
    return found


def _y(part: float) -> float:
    """Return the percent of the height of a part of the axis, from below."""
    return _BASE - (_BASE - _TOP) * part


def _column(row: DayRow, one: _Day, scale: Linear, unit: GpuTimeUnit) -> Markup:
    """Return one day's rectangles, idle and unknown at the top."""
    parts, below_s = Markup(""), 0.0
    for level in _LEVELS:
        seconds = unknown_s(row) if level == "unknown" else getattr(row, f"{level}_s")
        if seconds:
            bottom, top = (_y(scale.at(value / unit.seconds)) for value in (below_s, below_s + seconds))
            parts += _RECT.format(one.middle - one.width / 2, top, one.width, bottom - top, level)
            below_s += seconds
    jobs = "1 job" if row.jobs == 1 else f"{row.jobs} jobs"
    words = f"{day(row.day)} UTC: {jobs}, {unit.words(row.gpu_s)}, of these {unit.number(row.wasted_s)} wasted"
    return _COLUMN.format(words, parts)


def _dot(one: _Day) -> Markup:
    return _DOT.format(one.middle, _BASE, f"{day(one.number * DAY_S)} UTC: no jobs")


def _labels(days: Sequence[_Day], scale: Linear, unit: GpuTimeUnit) -> Iterator[Markup]:
    """Yield the dates below the columns and the values above them, as far as there is room."""
    busy = [(one, one.row) for one in days if one.row]
    every = all(later.middle - one.middle >= _APART for (one, _), (later, _) in pairwise(busy))
    peak = max(busy, key=lambda pair: pair[1].gpu_s, default=None)
    last = -_APART
    for one, row in busy:
        if one.middle - last >= _APART:
            yield _LABEL.format(one.middle, 98.0, day(one.number * DAY_S)[5:])
            last = one.middle
        if every or (one, row) == peak:
            yield _LABEL.format(one.middle, _y(scale.at(row.gpu_s / unit.seconds)) - 2, unit.number(row.gpu_s))
