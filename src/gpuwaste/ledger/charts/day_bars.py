"""Stacked bars of GPU-hours by day: one column a day, days without a run are empty."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.reports.report_types import DayRow
from gpuwaste.show.page_words import day, gpu_hours

MAX_DAYS: Final = 100
_LEVELS: Final = ("high", "moderate", "low", "idle", "unknown")
_PLOT: Final = 84.0  # percent of the height; the rest is for the days' names
_TOP: Final = 12.0  # for the numbers above the columns
_LABELS: Final = 8  # a window of seven days can have a part of an eighth
_RECT: Final = Markup('<rect x="{:.3f}%" y="{:.3f}%" width="{:.3f}%" height="{:.3f}%" class="{}"/>')
_LABEL: Final = Markup('<text x="{:.3f}%" y="{:.3f}%" text-anchor="middle">{}</text>')
_LABEL_Y: Final = 98.0


def day_bars(rows: Sequence[DayRow], start: int, end: int) -> Markup:
    """Return the bars of the days from `start` to `end`, UTC seconds; of a longer window its last MAX_DAYS."""
    last = (end - 1) // DAY_S
    first = max(start // DAY_S, last - MAX_DAYS + 1)
    by_day = {row.day // DAY_S: row for row in rows}
    most, peak = max(((row.gpu_s, -number) for number, row in by_day.items() if number >= first), default=(0.0, 0))
    width = 100 / max(last - first + 1, 1)
    every = -(-(last - first + 1) // _LABELS)
    parts: list[Markup] = []
    for place, number in enumerate(range(first, last + 1)):
        if row := by_day.get(number):
            parts.append(_column(row, place * width, width, most))
            if every == 1 or number == -peak:
                y = _PLOT - _height(row.gpu_s, most) - 2
                parts.append(_LABEL.format((place + 0.5) * width, y, gpu_hours(row.gpu_s)))
        if place % every == 0:
            parts.append(_LABEL.format((place + 0.5) * width, _LABEL_Y, day(number * DAY_S)[5:]))
    said = f"GPU-hours by day, at most {gpu_hours(most)} on one day"
    return Markup('<svg class="day-bars" width="100%" height="150" role="img" aria-label="{}">{}</svg>').format(
        said, Markup("").join(parts)
    )


def unknown_s(row: DayRow) -> float:
    """Return the GPU-seconds of a day that have no level."""
    return max(row.gpu_s - row.high_s - row.moderate_s - row.low_s - row.idle_s, 0.0)


def _height(seconds: float, most: float) -> float:
    return (_PLOT - _TOP) * seconds / most if most else 0.0


def _column(row: DayRow, x: float, width: float, most: float) -> Markup:
    """Return one day's rectangles, idle at the top."""
    parts, y = Markup(""), _PLOT
    for level in _LEVELS:
        seconds = unknown_s(row) if level == "unknown" else getattr(row, f"{level}_s")
        height = _height(seconds, most)
        if height:
            y -= height
            parts += _RECT.format(x + width * 0.1, y, width * 0.8, height, level)
    words = f"{day(row.day)} UTC: {gpu_hours(row.gpu_s)} GPU-hours of {row.jobs} jobs, {gpu_hours(row.wasted_s)} wasted"
    return Markup("<g><title>{}</title>{}</g>").format(words, parts)
