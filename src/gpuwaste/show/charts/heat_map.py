"""A heat map: a row for each name, shades of one colour, hatched where values are unknown."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from markupsafe import Markup

from gpuwaste.show.chart import Grid
from gpuwaste.show.charts import cell_shades, frame
from gpuwaste.show.charts.frame import LINE, Drawn, LegendEntry, Plot, Sheet
from gpuwaste.show.charts.labels import label
from gpuwaste.show.charts.scale import Linear, Scale, value_words
from gpuwaste.show.charts.slots import column_words, slot_ends
from gpuwaste.show.charts.svg import Value, element, finite, group, joined, pattern, shown, titled

_MOST_ROWS: Final = 120
_MOST_COLUMNS: Final = 400
_POINTED_AT: Final = 600
"""Most cells with a title each; with more cells each shade has one."""
_HIGHEST: Final = 22.0
_LOWEST: Final = 4.0
_TALL: Final = 440.0
"""Most pixels of all rows."""
_NEGATIVE: Final = 10
"""Offset of the shade of a value below 0."""


@dataclass(frozen=True, slots=True)
class _Cells:
    """The part of a grid that is drawn, with the least value of each shade."""

    chart: Grid
    columns: int
    rows: int
    values: Sequence[float | None]
    least: Sequence[float]
    most: float

    @classmethod
    def of(cls, chart: Grid) -> "_Cells":
        columns, rows = min(len(chart.columns), _MOST_COLUMNS), min(len(chart.rows), _MOST_ROWS)
        wide, count = len(chart.columns), len(chart.cells)
        places = (row * wide + column for row in range(rows) for column in range(columns))
        values = [finite(chart.cells[place]) if place < count else None for place in places]
        most = max((abs(value) for value in (*values, chart.reach) if value is not None), default=0.0)
        return cls(chart, columns, rows, values, cell_shades.shades_of_values(most), most)

    def shade(self, value: float | None) -> int:
        if value is None:
            return cell_shades.UNKNOWN
        return (cell_shades.shade_of(abs(value), self.least) + (_NEGATIVE if value < 0 else 0)) if value else 0

    def range_words(self, shade: int) -> str:
        return cell_shades.range_words(self.least, shade, self.most, self.chart.unit)

    def place(self, index: int, sheet: Sheet) -> str:
        column = column_words(self.chart.columns[index % self.columns], self.chart.x, sheet.zone)
        return f"{shown(self.chart.rows[index // self.columns], 60)}, {column}"


def draw(chart: Grid, sheet: Sheet) -> Drawn:
    """Return the marks of the chart."""
    found = _Cells.of(chart)
    top, y = frame.head(chart.title, _legend(found, sheet.key), sheet)
    if not found.values:
        return frame.empty(top, y, sheet)
    names = chart.rows[: found.rows]
    high = min(_HIGHEST, max(_LOWEST, sheet.height(_TALL) / found.rows))
    left = frame.room_for_names(names, sheet.width * 0.3)
    plot = Plot(left, y + LINE + 6, sheet.width - left - 2, high * found.rows)
    title = label(frame.axis_words(chart.y, sheet.zone), sheet.width, {"x": 0, "y": plot.top - 8, "class": "axis"})
    parts = [top, title, _marks(found, plot, sheet), frame.row_names(names, plot), _below(found, plot, sheet)]
    height = plot.bottom + 2 * LINE + 6
    if left_out := len(chart.rows) - found.rows + len(chart.columns) - found.columns:
        parts.append(frame.note(f"and {left_out:,} more rows and columns in the table", height))
        height += LINE
    words = f"Heat map, {found.rows:,} rows and {found.columns:,} columns. {_largest(found, sheet)}"
    return Drawn(joined(parts), height, words)


def _legend(found: _Cells, key: str) -> list[LegendEntry]:
    entries = [LegendEntry("0", "zero")] if 0 in found.values else []
    if found.most:
        shades = range(1, len(found.least) + 1)
        opacity = cell_shades.opacities(len(found.least))
        entries += [LegendEntry(found.range_words(shade), "role-main", opacity=opacity[shade - 1]) for shade in shades]
    if any(value is not None and value < 0 for value in found.values):
        entries.append(LegendEntry("below 0", "role-second"))
    return entries + ([LegendEntry("not known", "role-unknown", pattern(key, "hatch"))] if None in found.values else [])


def _marks(found: _Cells, plot: Plot, sheet: Sheet) -> Markup:
    shades = [found.shade(value) for value in found.values]
    panel: dict[str, Value] = {"x": plot.left, "y": plot.top, "width": plot.width, "height": plot.height}
    drawn = [element("rect", {**panel, "class": "panel"}), _shades(found, shades, plot)]
    if hatched := _boxes([shade == cell_shades.UNKNOWN for shade in shades], found.columns, plot):
        drawn.append(frame.unknown_area(hatched, sheet.key, "not known"))
    if len(shades) <= _POINTED_AT:
        drawn.append(_areas(found, plot, sheet))
    return joined(drawn)


def _shades(found: _Cells, shades: Sequence[int], plot: Plot) -> Markup:
    rows = [shades[row * found.columns : (row + 1) * found.columns] for row in reversed(range(found.rows))]
    opacity = cell_shades.opacities(len(found.least))
    marks = []
    for shade, path in cell_shades.paths([shade for row in rows for shade in row], found.columns).items():
        if shade != cell_shades.UNKNOWN:
            step, below = shade % _NEGATIVE, shade > _NEGATIVE
            words = ("below 0: " if below else "") + found.range_words(step)
            role = "role-second" if below else "role-main"
            marks.append(titled("path", {"d": path, "class": role, "opacity": opacity[step - 1]}, words))
    return cell_shades.placed(plot, found.columns, found.rows, "grid", *marks)


def _boxes(wanted: Sequence[bool], columns: int, plot: Plot) -> str:
    """Return the path of the wanted cells in pixels: a pattern must not be stretched with its cell."""
    rows = len(wanted) // columns
    wide, high, found = plot.width / columns, plot.height / rows, []
    for row in range(rows):
        column = 0
        for inside, run in groupby(wanted[row * columns : (row + 1) * columns]):
            length = sum(1 for _ in run)
            if inside:
                x, y, size = plot.left + column * wide, plot.top + row * high, length * wide
                found.append(f"M{x:.1f} {y:.1f}h{size:.1f}v{high:.1f}h-{size:.1f}z")
            column += length
    return "".join(found)


def _areas(found: _Cells, plot: Plot, sheet: Sheet) -> Markup:
    """Return an area for each cell that names its place and value."""
    wide, high = plot.width / found.columns, plot.height / found.rows
    areas = []
    for index, value in enumerate(found.values):
        x, y = plot.left + index % found.columns * wide, plot.top + index // found.columns * high
        words = f"{found.place(index, sheet)}: {value_words(value, found.chart.unit)}"
        areas.append(titled("rect", {"x": x, "y": y, "width": wide, "height": high}, words))
    return group("areas", *areas)


def _below(found: _Cells, plot: Plot, sheet: Sheet) -> Markup:
    axis, columns = found.chart.x, found.chart.columns[: found.columns]
    title = frame.axis_words(axis, sheet.zone)
    places = [place for column in columns if not isinstance(column, str) and (place := finite(column)) is not None]
    if axis.scale not in {"time", "linear"} or len(places) < len(columns) or places != sorted(places):
        return frame.names_axis([column_words(column, axis, sheet.zone) for column in columns], plot, title)
    end = slot_ends(places, axis)[-1]
    scale: Scale = Linear(places[0], end, axis.unit)
    if axis.scale == "time":
        scale = frame.scale_of(axis, [*places, end], sheet.zone)
    return frame.level_axis(scale, plot, title, sheet.room)


def _largest(found: _Cells, sheet: Sheet) -> str:
    known = [(value, index) for index, value in enumerate(found.values) if value is not None]
    if not known:
        return "No value is known."
    value, index = max(known)
    return f"The largest value is {value_words(value, found.chart.unit)}: {found.place(index, sheet)}."
