"""Charts of GPU-time by level: one bar, and the heat strip of one GPU."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from markupsafe import Markup

from gpuwaste.core.text import harmless
from gpuwaste.ledger.reports.job_types import HourCell
from gpuwaste.ledger.reports.report_types import Thresholds
from gpuwaste.show.page_words import cut, share

_HALF: Final = 0.5  # share of a cell that must be known for it to have a level
_RECT: Final = Markup('<rect x="{:.3f}%" y="0" width="{:.3f}%" height="100%" class="{}"><title>{}</title></rect>')
Stretch = tuple[float, float, str]
"""From, to (UTC seconds), level."""
Span = tuple[float, float]
"""From, to, UTC seconds."""
LEVELS: Final = ("high", "moderate", "low", "idle", "unknown", "suspended")
_LEVEL_RECT: Final = Markup('<rect x="{:.3f}%" y="0" width="{:.3f}%" height="100%" class="{}"><title>{}</title></rect>')


def strip(cells: Sequence[HourCell], ran: Span, axis: Span, limits: Thresholds, name: str) -> Markup:
    """Return the strip of a GPU of a run that ran over one span, on an axis of another."""
    start, span = axis[0], max(axis[1] - axis[0], 1.0)

    def rect(t0: float, t1: float, level: str) -> Markup:
        title = f"{_clock(t0)} to {_clock(t1)}: {level}"
        return _RECT.format(100 * (t0 - start) / span, 100 * (t1 - t0) / span, level, title)

    parts = [rect(*ran, "unknown"), *(rect(*stretch) for stretch in stretches(cells, *ran, limits))]
    return Markup('<svg class="strip" width="100%" height="22" role="img" aria-label="{}">{}</svg>').format(
        f"use of {harmless(cut(name))} over time", Markup("").join(parts)
    )


def stretches(cells: Iterable[HourCell], start: float, end: float, limits: Thresholds) -> list[Stretch]:
    """Return the stretches of one level, adjacent ones of the same level merged; unknown time is left out."""
    found: list[Stretch] = []
    for level, group in groupby(sorted(cells, key=lambda cell: cell.t0), key=lambda cell: _level(cell, limits)):
        if level == "unknown":
            continue
        for cell in group:
            t0, t1 = max(cell.t0, start), min(cell.t1, end)
            if t1 <= t0:
                continue
            if found and found[-1][2] == level and t0 - found[-1][1] < 1:
                found[-1] = (found[-1][0], t1, level)
            else:
                found.append((t0, t1, level))
    return found


def _level(cell: HourCell, limits: Thresholds) -> str:
    known = cell.known_s >= _HALF * (cell.t1 - cell.t0)
    return level_of(cell.mean_util_pct, limits) if known else "unknown"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%d %H:%M UTC")


def level_of(mean_pct: float | None, limits: Thresholds) -> str:
    """Return the level of a mean utilization by a document's thresholds."""
    if mean_pct is None:
        return "unknown"
    if mean_pct == 0:
        return "idle"
    if mean_pct < limits.low_below_pct:
        return "low"
    return "high" if mean_pct > limits.high_above_pct else "moderate"


def level_bar(gpu_s: Mapping[str, float]) -> Markup:
    """Return the bar of GPU-seconds by level; an empty frame if there are none."""
    whole = sum(gpu_s.get(level, 0.0) for level in LEVELS)
    parts, at = [], 0.0
    for level in LEVELS:
        width = 100 * gpu_s.get(level, 0.0) / whole if whole else 0.0
        if width:
            parts.append(_LEVEL_RECT.format(at, width, level, f"{level} {share(width, 100)}"))
            at += width
    said = ", ".join(f"{level} {share(gpu_s.get(level, 0.0), whole)}" for level in LEVELS if gpu_s.get(level))
    return Markup('<svg class="level-bar" width="100%" height="24" role="img" aria-label="{}">{}</svg>').format(
        said or "no GPU-time", Markup("").join(parts)
    )
