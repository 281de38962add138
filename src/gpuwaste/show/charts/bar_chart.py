"""Bars: vertical over times, horizontal for long names; each slot's series stacked, up and down, or side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from gpuwaste.show.chart import Axis, Bars
from gpuwaste.show.charts import frame
from gpuwaste.show.charts.frame import LINE, Drawn, Plot, Sheet
from gpuwaste.show.charts.labels import SIZE, label, lines_of, listed, width
from gpuwaste.show.charts.scale import Linear, LogScale, Scale, value_words
from gpuwaste.show.charts.slots import Slot, fewer, names_of, place_words, slot_words, slots_of, summary
from gpuwaste.show.charts.svg import element, group, joined, number, shown, titled

_HEIGHT: Final = 260
_ROW: Final = 24
_TALL_ROW: Final = 34
"""Pixels of a row if names take two lines."""
_BAR: Final = 18
_NAME_LINE: Final = 14
_MOST_ROWS: Final = 40
_SHORT_NAME: Final = 6
_WIDEST: Final = 72.0
_TIGHT: Final = 6.0
"""Pixels of a slot below which bars touch each other: gaps would make them look like a comb."""
_ALL: Final = 100.1
"""Percent below which rounded parts add up to all."""
_CAP: Final = 6
"""Pixels of the hatched cap on a bar with an unknown part."""

Box = tuple[float, float, float, float]
"""x, y, width, height."""


@dataclass(frozen=True, slots=True)
class _StackSegment:
    """The part of one series, from `begin` to `end` on the axis of values, in one of the lanes of its slot."""

    series: int
    begin: float
    end: float
    lane: float = 0.0
    lanes: float = 1.0


@dataclass(frozen=True, slots=True)
class _Layout:
    """The positions of bars: begin and size of each slot on its axis, and the position of a value on the other one."""

    plot: Plot
    scale: Scale
    areas: Sequence[tuple[float, float]]
    lying: bool = False

    def box(self, slot: int, part: _StackSegment) -> Box:
        """Return the rectangle of a segment."""
        begin, size = self.areas[slot]
        begin, size = begin + part.lane * size, size * part.lanes
        low, high = sorted((self.scale.at(part.begin), self.scale.at(part.end)))
        if self.lying:
            return self.plot.x(low), begin, self.plot.width * (high - low), size
        return begin, self.plot.y(high), size, self.plot.height * (high - low)

    def slot(self, slot: int) -> Box:
        """Return the rectangle of a slot, over all of the plot."""
        begin, size = self.areas[slot]
        if self.lying:
            return self.plot.left, begin, self.plot.width, size
        return begin, self.plot.top, size, self.plot.height

    def cap(self, slot: int, end: float) -> Box:
        """Return the rectangle after a bar that ends at a value."""
        begin, size = self.areas[slot]
        at = self.scale.at(end)
        return (self.plot.x(at), begin, _CAP, size) if self.lying else (begin, self.plot.y(at) - _CAP, size, _CAP)


def draw(chart: Bars, sheet: Sheet) -> Drawn:
    """Return the marks of the chart."""
    series = chart.series[: frame.MOST]
    slots = slots_of(chart.at, series, chart.x)
    names = names_of(chart.at, chart.x) if chart.x.scale == "category" else []
    words = place_words(chart.x, sheet.zone, names)
    top, y = frame.head(chart.title, frame.legend_entries(chart.title, series, sheet.key), sheet)
    lying = bool(names) and (chart.sideways or not _fits(names, sheet.width))
    kept = slots[:_MOST_ROWS] if lying else slots[: sheet.width // 8] if names else fewer(slots, sheet.width // 3)
    if not slots:
        return frame.empty(top, y, sheet)
    body, height = (_lying if lying else _upright)(chart, kept, [words(slot) for slot in kept], y, sheet)
    parts = [top, body]
    if len(slots) > len(kept):
        left_out = f"and {len(slots) - len(kept):,} more in the table"
        parts.append(frame.note(left_out if names else f"each bar is the mean of {kept[0].count}", height))
        height += LINE
    told = f"Bars of {frame.axis_words(chart.y, sheet.zone)} at {len(slots):,} positions: {listed(series)}."
    return Drawn(joined(parts), height, f"{told} {summary(slots, series, chart.y.unit, words)}")


def _upright(chart: Bars, slots: Sequence[Slot], texts: Sequence[str], y: float, sheet: Sheet) -> tuple[Markup, float]:
    scale = _value_scale(chart.y, slots, stacked=chart.stacked)
    high = sheet.height(_HEIGHT)
    left = frame.room_for_values(scale, high) + 2
    plot = Plot(left, y + LINE + 12, sheet.width - left - 2, high)
    named = chart.x.scale == "category"
    edges = [edge for slot in slots for edge in (slot.at, slot.end)]
    places = Linear(0.0, float(len(slots))) if named else frame.scale_of(chart.x, edges, sheet.zone)
    areas = []
    for slot in slots:
        begin, end = plot.x(places.at(slot.at)), plot.x(places.at(slot.end))
        size = min(_WIDEST, end - begin if end - begin < _TIGHT else (end - begin) * 0.8)
        areas.append(((begin + end - size) / 2, max(0.5, size)))
    title = frame.axis_words(chart.x, sheet.zone)
    if named:
        below = frame.names_axis(texts, plot, title)
    else:
        below = frame.level_axis(places, plot, title, sheet.room, period=plot.width / len(slots))
    marks = _marks(chart, slots, texts, _Layout(plot, scale, areas), sheet.key)
    across = frame.value_axis(scale, plot, frame.axis_words(chart.y, sheet.zone))
    return joined([across, marks, below]), plot.bottom + 2 * LINE + 6


def _lying(chart: Bars, slots: Sequence[Slot], texts: Sequence[str], y: float, sheet: Sheet) -> tuple[Markup, float]:
    scale = _value_scale(chart.y, slots, stacked=chart.stacked)
    left = frame.room_for_names(texts, sheet.width * 0.36)
    totals = [_total(chart, slot) for slot in slots]
    names = [lines_of(text, left - 8, SIZE) for text in texts]
    row = _ROW if all(len(lines) == 1 for lines in names) else _TALL_ROW
    plot = Plot(left, y + 2, sheet.width - left - max(width(total) for total in totals) - 14, row * len(slots))
    begin = plot.top + (row - _BAR) / 2
    layout = _Layout(plot, scale, [(begin + index * row, _BAR) for index in range(len(slots))], lying=True)
    parts = [
        frame.level_axis(scale, plot, frame.axis_words(chart.y, sheet.zone), sheet.room, across=True),
        _marks(chart, slots, texts, layout, sheet.key),
    ]
    for index, (slot, lines, total) in enumerate(zip(slots, names, totals, strict=True)):
        base = layout.areas[index][0] + 13
        parts.append(_name(lines, texts[index], left - 8, base))
        cap = _CAP if None in slot.values else 0
        end = plot.x(scale.at(_highest(slot, stacked=chart.stacked))) + cap
        parts.append(element("text", {"x": end + 6, "y": base, "class": "tick"}, total))
    return joined(parts), plot.bottom + 2 * LINE + 6


def _name(lines: Sequence[str], text: str, x: float, base: float) -> Markup:
    """Return the name of a row, which ends at `x`, in one or two lines; where it is cut all of it is the title."""
    if len(lines) == 1:
        return label(text, x, {"x": x, "y": base, "class": "tick end"})
    title = [] if " ".join(lines) == shown(text) else [element("title", {}, shown(text))]
    heights = (base - _NAME_LINE / 2, base + _NAME_LINE / 2)
    return joined(
        [
            element("text", {"x": x, "y": y, "class": "tick end"}, *title, line)
            for line, y in zip(lines, heights, strict=True)
        ]
    )


def _marks(chart: Bars, slots: Sequence[Slot], texts: Sequence[str], layout: _Layout, key: str) -> Markup:
    """Return a path for each series, the unknown areas, and an area for each slot with its values as text."""
    series = chart.series[: frame.MOST]
    paths: list[list[str]] = [[] for _ in series]
    unknown, areas = [], []
    for index, slot in enumerate(slots):
        for part in _segments(slot, stacked=chart.stacked):
            paths[part.series].append(_path(layout.box(index, part)))
        if all(value is None for value in slot.values):
            unknown.append(_path(layout.slot(index)))
        elif None in slot.values:
            unknown.append(_path(layout.cap(index, _highest(slot, stacked=chart.stacked))))
        words = slot_words(texts[index], series, slot.values, chart.y.unit)
        areas.append(_area(layout.slot(index), words))
    tight = "tight " if min(size for _, size in layout.areas) < _TIGHT else ""
    marks = []
    for entry, parts in zip(frame.entries(series, key), paths, strict=True):
        fill = {"fill": entry.fill} if entry.fill else {}
        if parts:
            marks.append(titled("path", {"d": "".join(parts), "class": f"bar {tight}{entry.kind}", **fill}, entry.text))
    if unknown:
        marks.append(frame.unknown_area("".join(unknown), key, "not known"))
    return joined([group("marks", *marks), group("areas", *areas)])


def _total(chart: Bars, slot: Slot) -> str:
    known = [value for value in slot.values if value is not None]
    if not known:
        return "not known"
    value = sum(known) if chart.stacked else max(known)
    return value_words(value, chart.y.unit if len(chart.y.unit) == 1 else "")


def _fits(names: Sequence[str], room: int) -> bool:
    """Return whether the names fit below their bars; short ones always do, since if needed only every n-th is shown."""
    if max(len(name) for name in names) <= _SHORT_NAME:
        return True
    return max(width(name[:100]) for name in names) + 8 <= (room - 60) / len(names)


def _path(box: Box) -> str:
    x, y, wide, high = (number(value) for value in box)
    return f"M{x} {y}h{wide}v{high}h{number(-float(wide))}z"


def _area(box: Box, words: str) -> Markup:
    x, y, wide, high = box
    return titled("rect", {"x": x, "y": y, "width": wide, "height": high}, words)


def _segments(slot: Slot, *, stacked: bool) -> list[_StackSegment]:
    """Return the segments of the known values."""
    found, above, below = [], 0.0, 0.0
    for index, value in enumerate(slot.values):
        if value is None or value == 0:
            continue
        if not stacked:
            found.append(_StackSegment(index, 0.0, value, index / len(slot.values), 1 / len(slot.values)))
        elif value > 0:
            found.append(_StackSegment(index, above, above := above + value))
        else:
            found.append(_StackSegment(index, below, below := below + value))
    return found


def _highest(slot: Slot, *, stacked: bool) -> float:
    """Return where the marks of a slot end: the unknown part begins there."""
    return max([0.0, *(one.end for one in _segments(slot, stacked=stacked))])


def _value_scale(axis: Axis, slots: Sequence[Slot], *, stacked: bool) -> Scale:
    """Return a scale from 0 with room for each stack."""
    ends = [*(one.end for slot in slots for one in _segments(slot, stacked=stacked)), *axis.reach]
    if axis.scale == "log":
        low, high = min((end for end in ends if end > 0), default=1.0), max(ends, default=10.0)
        return LogScale(low / 2, max(high, low * 5), axis.unit, zero=True)
    if axis.unit == "%" and 0 < max(ends, default=0.0) < _ALL and min(ends) >= 0:
        return Linear(0.0, 100.0 if max(ends) > 50 else Linear.round(0.0, max(ends), "").high, "%")  # noqa: PLR2004
    return Linear.round(min(0.0, *ends, 0.0), max(0.0, *ends, 0.0), axis.unit)
