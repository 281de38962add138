"""Lines with their band, hatched gaps for unknown values, and the values of each position as tooltips."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup

from gpuwaste.show.chart import Axis, Lines
from gpuwaste.show.charts import frame
from gpuwaste.show.charts.frame import LINE, Drawn, LegendEntry, Plot, Sheet
from gpuwaste.show.charts.labels import listed
from gpuwaste.show.charts.scale import Linear, LogScale, Scale
from gpuwaste.show.charts.slots import Slot, fewer, names_of, place_words, slot_words, slots_of, summary
from gpuwaste.show.charts.svg import finite, group, joined, titled

_HEIGHT: Final = 280
_POINTED_AT: Final = 96
"""Most positions with a separate tooltip; with more, several positions share one."""

Point = tuple[float, float]
_Range = tuple[float, float, float]


def draw(chart: Lines, sheet: Sheet) -> Drawn:
    """Return the marks of the chart."""
    series = chart.series[: frame.MOST]
    slots = slots_of(chart.at, series, chart.x)
    if not slots:
        top, y = frame.head(chart.title, [], sheet)
        return frame.empty(top, y, sheet)
    names = names_of(chart.at, chart.x) if chart.x.scale == "category" else []
    band = _band(chart)
    entries = frame.entries(series, sheet.key)
    named = frame.legend_entries(chart.title, series, sheet.key)
    legend = [LegendEntry(entry.text, f"{entry.kind} stroke") for entry in named]
    top, y = frame.head(chart.title, [*legend, *([LegendEntry("range", "band")] if any(band) else [])], sheet)
    up = _scale(chart.y, slots, band)
    high = sheet.height(_HEIGHT)
    left = frame.room_for_values(up, high) + 2
    plot = Plot(left, y + LINE + 12, sheet.width - left - 6, high)
    places = [slot.at for slot in slots]
    across = Linear(-0.5, len(slots) - 0.5) if names else frame.scale_of(chart.x, places, sheet.zone)
    words = place_words(chart.x, sheet.zone, names)
    parts = [top, frame.value_axis(up, plot, frame.axis_words(chart.y, sheet.zone))]
    parts += [_unknown(slots, across, plot, sheet.key), _band_area(band, across, up, plot)]
    for entry, values in zip(entries, zip(*(slot.values for slot in slots), strict=True), strict=True):
        points = [_point(place, value, across, up, plot) for place, value in zip(places, values, strict=True)]
        for d, kind in zip(_path(points, plot), ("line", "line dots"), strict=True):
            parts.append(titled("path", {"d": d, "class": f"{kind} {entry.kind}"}, entry.text) if d else Markup())
    areas = [
        titled("rect", {"x": begin, "y": plot.top, "width": end - begin, "height": plot.height}, text)
        for begin, end, text in _pointed_at(chart, slots, across, plot, sheet)
    ]
    title = frame.axis_words(chart.x, sheet.zone)
    texts = [words(slot) for slot in slots] if names else []
    parts.append(frame.names_axis(texts, plot, title) if names else frame.level_axis(across, plot, title, sheet.room))
    told = f"Lines of {frame.axis_words(chart.y, sheet.zone)} at {len(slots):,} places: {listed(series)}."
    body = joined([*parts, group("areas", *areas)])
    return Drawn(body, plot.bottom + 2 * LINE + 6, f"{told} {summary(slots, series, chart.y.unit, words)}")


def _scale(axis: Axis, slots: Sequence[Slot], band: Sequence[_Range | None]) -> Scale:
    values = [value for slot in slots for value in slot.values if value is not None]
    values += [*(end for one in band if one for end in one[1:]), *axis.reach]
    if axis.scale == "log":
        return LogScale.of(values, axis.unit)
    return Linear.round(min([0.0, *values]), max(values, default=1.0), axis.unit)


def _point(place: float, value: float | None, across: Scale, up: Scale, plot: Plot) -> Point | None:
    return None if value is None else (plot.x(across.at(place)), plot.y(up.at(value)))


def _path(points: Sequence[Point | None], plot: Plot) -> tuple[str, str]:
    """Return the path of the known points, and that of those without a neighbour, which are dots."""
    lines, dots = [], []
    for known, run in groupby(points, lambda point: point is not None):
        if known:
            first, *rest = _thinned([point for point in run if point is not None], plot)
            begin = f"M{first[0]:.1f},{first[1]:.1f}"
            if rest:
                lines.append(f"{begin}L" + " ".join(f"{x:.1f},{y:.1f}" for x, y in rest))
            else:
                dots.append(f"{begin}h0")
    return "".join(lines), "".join(dots)


def _thinned(points: Sequence[Point], plot: Plot) -> list[Point]:
    """Return the first, lowest, highest and last point of every two pixels: the drawn line does not change."""
    if len(points) <= plot.width:
        return list(points)
    found: list[Point] = []
    for _, same in groupby(points, lambda point: point[0] // 2):
        column = list(same)
        ends = (column[0], min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1]), column[-1])
        found += dict.fromkeys(ends)
    return found


def _band(chart: Lines) -> list[_Range | None]:
    """Return position, low and high in order; None where one of them is unknown."""
    found = []
    for raw, low, high in zip(chart.at, chart.low, chart.high, strict=False):
        if (place := finite(raw)) is not None:
            found.append((place, finite(low), finite(high)))
    return [
        None if low is None or high is None else (place, min(low, high), max(low, high))
        for place, low, high in sorted(found, key=lambda one: one[0])
    ]


def _band_area(band: Sequence[_Range | None], across: Scale, up: Scale, plot: Plot) -> Markup:
    parts = []
    for known, run in groupby(band, lambda one: one is not None):
        if known:
            ranges = [one for one in run if one is not None]
            kept = ranges if len(ranges) <= plot.width else [*ranges[:: int(len(ranges) / plot.width) + 1], ranges[-1]]
            above = [f"{plot.x(across.at(place)):.1f},{plot.y(up.at(high)):.1f}" for place, _, high in kept]
            below = [f"{plot.x(across.at(place)):.1f},{plot.y(up.at(low)):.1f}" for place, low, _ in reversed(kept)]
            parts.append("M" + " ".join(above + below) + "z")
    return titled("path", {"d": "".join(parts), "class": "band"}, "range") if parts else Markup()


def _unknown(slots: Sequence[Slot], across: Scale, plot: Plot, key: str) -> Markup:
    """Return the hatched gaps: from one position with a known value to the next."""
    parts, before, edges = [], plot.left, [plot.x(across.at(slot.at)) for slot in slots]
    gaps = groupby(zip(edges, slots, strict=True), lambda item: all(value is None for value in item[1].values))
    runs = [(unknown, [edge for edge, _ in run]) for unknown, run in gaps]
    for index, (unknown, places) in enumerate(runs):
        if unknown:
            end = runs[index + 1][1][0] if index + 1 < len(runs) else plot.right
            if end - before >= 1:
                parts.append(f"M{before:.1f} {plot.top:.1f}h{end - before:.1f}v{plot.height:.1f}h-{end - before:.1f}z")
        before = places[-1]
    return frame.unknown_area("".join(parts), key, "not known") if parts else Markup()


def _pointed_at(
    chart: Lines, slots: Sequence[Slot], across: Scale, plot: Plot, sheet: Sheet
) -> Iterator[tuple[float, float, str]]:
    """Yield adjacent areas, with borders halfway between the positions, with the values of each."""
    series = chart.series[: frame.MOST]
    names = names_of(chart.at, chart.x) if chart.x.scale == "category" else []
    words = place_words(chart.x, sheet.zone, names)
    kept = fewer(slots, _POINTED_AT)
    middles = [
        (plot.x(across.at(one.at)) + plot.x(across.at(one.end if one.count > 1 else one.at))) / 2 for one in kept
    ]
    for index, slot in enumerate(kept):
        begin = (middles[index - 1] + middles[index]) / 2 if index else plot.left
        end = (middles[index] + middles[index + 1]) / 2 if index + 1 < len(kept) else plot.right
        yield begin, max(begin, end), slot_words(words(slot), series, slot.values, chart.y.unit)
