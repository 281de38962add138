"""A Gantt chart: a row for each node with a lane for each GPU, a bar for each job, darker the longer it waited.

Bars differ by shades of one colour, edges and the job's number, never by hue.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from markupsafe import Markup

from gpuwaste.show.chart import Gantt, Row, Span
from gpuwaste.show.charts import frame
from gpuwaste.show.charts.cell_shades import opacities
from gpuwaste.show.charts.frame import LINE, Drawn, LegendEntry, Plot, Sheet
from gpuwaste.show.charts.labels import label, width
from gpuwaste.show.charts.svg import Value, element, finite, group, joined, pattern, shown, titled
from gpuwaste.show.charts.time_axis import Time, time_words

_MOST_LANES: Final = 400
_MOST_SPANS: Final = 1000
_MOST_DOWN: Final = 400
_MOST_SHADES: Final = 12
_TALL: Final = 900.0
_LOWEST: Final = 3.0
_HIGHEST: Final = 16.0
_LEAST_ROW: Final = 4.0
_BETWEEN: Final = 2.0
_TEXT: Final = 12.0
"""Pixels of a bar or of a row with a text."""


@dataclass(frozen=True, slots=True)
class _RowPlace:
    """The position of a row: its upper edge and the height of one of its lanes."""

    row: Row
    top: float
    lane: float

    @property
    def lanes(self) -> int:
        return max(1, self.row.lanes)

    @property
    def height(self) -> float:
        return self.lane * self.lanes


class _Box(NamedTuple):
    """The rectangle of a bar, in pixels."""

    x: float
    y: float
    width: float
    height: float


def draw(chart: Gantt, sheet: Sheet) -> Drawn:
    """Return the marks of the chart."""
    rows, start, end = _kept(chart), finite(chart.start), finite(chart.end)
    top, y = frame.head(chart.title, _legend(chart, rows, sheet.key), sheet)
    if not rows or start is None or end is None or end <= start:
        return frame.empty(top, y, sheet)
    high = min(_HIGHEST, max(_LOWEST, _TALL / sum(max(1, row.lanes) for row in rows)))
    left = min(max(width(shown(row.name, 60)) for row in rows), sheet.width * 0.3) + 10
    places, below = [], y + 6
    for row in rows:
        places.append(_RowPlace(row, below, max(high, _LEAST_ROW / max(1, row.lanes))))
        below += places[-1].height + _BETWEEN
    plot = Plot(left, y + 6, sheet.width - left - 2, below - y - 6)
    scale = Time(start, end, sheet.zone)
    boxes = list(_boxes(chart, places, scale, plot))
    bars = group("spans", *_spans(chart, boxes, sheet))
    marks = [_idle(places, plot), bars, group("on-bar", *_texts(boxes)), *_down(places, scale, plot, sheet)]
    axis = frame.level_axis(scale, plot, frame.axis_words(chart.x, sheet.zone), sheet.room)
    parts, height = [top, *marks, _names(places, left), axis], plot.bottom + 2 * LINE + 6
    if words := shown(chart.note, 200):
        parts.append(label(words, sheet.width, {"x": 0, "y": height + 10, "class": "axis"}))
        height += LINE
    told = f"Gantt chart of {len(rows):,} nodes with {len(chart.spans):,} bars. {words}".rstrip()
    return Drawn(joined(parts), height, told)


def _kept(chart: Gantt) -> list[Row]:
    found, lanes = [], 0
    for row in chart.rows:
        lanes += max(1, row.lanes)
        if lanes > _MOST_LANES:
            break
        found.append(row)
    return found


def _legend(chart: Gantt, rows: Sequence[Row], key: str) -> list[LegendEntry]:
    shades = chart.shades[:_MOST_SHADES]
    entries = [LegendEntry("not held", "zero")]
    entries += [
        LegendEntry(words, "role-main", opacity=part)
        for words, part in zip(shades, opacities(len(shades)), strict=True)
    ]
    down = any(row.down for row in rows)
    return entries + ([LegendEntry("node down", "role-unknown", pattern(key, "hatch"))] if down else [])


def _idle(places: Sequence[_RowPlace], plot: Plot) -> Markup:
    """Return the background panel of each row, visible where nothing is held."""
    d = "".join(
        f"M{plot.left:.1f} {one.top:.1f}h{plot.width:.1f}v{one.height:.1f}h-{plot.width:.1f}z" for one in places
    )
    return element("path", {"d": d, "class": "panel"})


def _boxes(chart: Gantt, places: Sequence[_RowPlace], scale: Time, plot: Plot) -> Iterator[tuple[Span, _Box]]:
    """Yield the visible bars with their rectangles."""
    for span in chart.spans[:_MOST_SPANS]:
        found = _box(span, places[span.row], scale, plot) if 0 <= span.row < len(places) else None
        if found is not None:
            yield span, found


def _box(span: Span, place: _RowPlace, scale: Time, plot: Plot) -> _Box | None:
    start, end, first, lanes = (finite(value) for value in (span.start, span.end, span.first, span.lanes))
    if start is None or end is None or first is None or lanes is None or end <= scale.low or start >= scale.high:
        return None
    x, right = plot.x(scale.at(start)), plot.x(scale.at(end))
    above = min(max(0.0, first), place.lanes) * place.lane
    size = min(max(0.0, lanes) * place.lane, place.height - above)
    return _Box(x, place.top + above, max(right - x, 0.5), max(size, 0.5))


def _spans(chart: Gantt, boxes: Sequence[tuple[Span, _Box]], sheet: Sheet) -> Iterator[Markup]:
    opacity = opacities(max(1, min(_MOST_SHADES, len(chart.shades))))
    for span, box in boxes:
        ends = [time_words(instant, sheet.zone) for instant in (span.start, span.end)]
        part = opacity[min(max(0, span.shade), len(opacity) - 1)]
        mark: dict[str, Value] = {**box._asdict(), "class": "bar role-main"}
        mark |= {"fill-opacity": part} if part < 1 else {}
        yield titled("rect", mark, shown(f"{span.name}, {span.words}, {' to '.join(ends)}", 200))


def _texts(boxes: Sequence[tuple[Span, _Box]]) -> Iterator[Markup]:
    """Yield the names of the bars that have room for the full name."""
    for span, box in boxes:
        room, name = box.width - 6, shown(span.name, 60)
        if box.height >= _TEXT and room > 0 and width(name) <= room:
            yield element("text", {"x": box.x + 3, "y": box.y + box.height / 2 + 4}, name)


def _down(places: Sequence[_RowPlace], scale: Time, plot: Plot, sheet: Sheet) -> Iterator[Markup]:
    for place in places:
        boxes = []
        for ends in place.row.down[:_MOST_DOWN]:
            start, end = (finite(value) for value in ends)
            if start is not None and end is not None and end > scale.low and start < scale.high:
                x, right = plot.x(scale.at(start)), plot.x(scale.at(end))
                boxes.append(f"M{x:.1f} {place.top:.1f}H{right:.1f}v{place.height:.1f}H{x:.1f}z")
        if boxes:
            yield frame.unknown_area("".join(boxes), sheet.key, f"{shown(place.row.name, 60)} is down")


def _names(places: Sequence[_RowPlace], left: float) -> Markup:
    """Return the names of the rows; for low rows only names that have room."""
    found, free = [], 0.0
    for place in places:
        middle = place.top + place.height / 2
        if middle - _TEXT / 2 >= free:
            found.append(label(place.row.name, left - 10, {"x": left - 8, "y": middle + 4, "class": "tick end"}))
            free = middle + _TEXT / 2 + 2
    return group("values", *found)
