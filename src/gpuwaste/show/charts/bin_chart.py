"""Points counted on a grid: each group of points in a separate panel, so that none hides another."""

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import Final

from markupsafe import Markup

from gpuwaste.show.chart import Axis, Bins, Layer
from gpuwaste.show.charts import cell_shades, frame
from gpuwaste.show.charts.frame import LINE, Drawn, LegendEntry, Plot, Sheet
from gpuwaste.show.charts.labels import label
from gpuwaste.show.charts.scale import EdgeScale, Scale
from gpuwaste.show.charts.svg import Value, element, joined, shown, titled

_MOST_PANELS: Final = 6
_GAP: Final = 24
_NARROW: Final = 600
_FLAT: Final = 0.45
_MOST_CELLS: Final = 40_000
_HIGHEST_ROW: Final = 44.0
"""Most pixels of a row with a name."""


def draw(chart: Bins, sheet: Sheet) -> Drawn:
    """Return the marks of the chart."""
    drawn = [layer for layer in chart.layers if any(count > 0 for count in layer.counts)]
    shown_layers = sorted(drawn, key=lambda layer: -sum(layer.counts))[:_MOST_PANELS]
    if not shown_layers or not _rising(chart):
        top, y = frame.head(chart.title, [], sheet)
        return frame.empty(top, y, sheet, "No data in this window" if not shown_layers else "No bins")
    least = cell_shades.shades_of_counts(max(chart.reach, *(max(layer.counts) for layer in shown_layers)))
    kind = frame.entries(shown_layers, sheet.key)[0].kind if len(shown_layers) == 1 else "role-muted"
    ramp = [
        LegendEntry(cell_shades.count_words(least, shade), kind, opacity=opacity)
        for shade, opacity in enumerate(cell_shades.opacities(len(least)), 1)
    ]
    top, y = frame.head(chart.title, [LegendEntry("in one cell:", ""), *ramp], sheet)
    across = 1 if len(shown_layers) == 1 or sheet.width < _NARROW else 2 if len(shown_layers) in {2, 4} else 3
    wide = (sheet.width - _GAP * (across - 1)) / across
    parts, bottom = [top], y
    for index, layer in enumerate(shown_layers):
        if index % across == 0:
            y = bottom
        left = (wide + _GAP) * (index % across)
        panel, bottom = _panel(chart, layer, least, Plot(left, y, wide, 0), sheet)
        parts.append(panel)
    totals = ", ".join(f"{shown(layer.name, 60)} {sum(layer.counts):,}" for layer in shown_layers)
    axes = f"{frame.axis_words(chart.y, sheet.zone)} against {frame.axis_words(chart.x, sheet.zone)}"
    return Drawn(joined(parts), bottom, f"Counts on a grid, {axes}. {totals}.")


def _panel(chart: Bins, layer: Layer, least: Sequence[float], room: Plot, sheet: Sheet) -> tuple[Markup, float]:
    """Return one group of points with its own axes."""
    columns, rows = len(chart.x_edges) - 1, len(chart.y_edges) - 1
    across, up = _scale(chart.x, chart.x_edges, sheet), _scale(chart.y, chart.y_edges, sheet)
    high = sheet.height(max(frame.SMALL, room.width * (_FLAT if room.width > _NARROW else 0.62)))
    if names := _names(chart):
        high = min(high, _HIGHEST_ROW * rows)
        left = frame.room_for_names(names, room.width * 0.3)
    else:
        left = frame.room_for_values(up, high) + 2
    name = label(
        f"{layer.name}, {sum(layer.counts):,}", room.width, {"x": room.left, "y": room.top + 14, "class": "name"}
    )
    plot = Plot(room.left + left, room.top + 2 * LINE + 14, room.width - left - 2, high)
    title = frame.axis_words(chart.y, sheet.zone)
    upright = _rows(names, plot, title, room.left) if names else frame.value_axis(up, plot, title, left=room.left)
    counts = [*layer.counts[: columns * rows], *[0] * (columns * rows - len(layer.counts))]
    shades = [cell_shades.shade_of(count, least) if count > 0 else 0 for count in counts]
    kind = frame.entries([layer], sheet.key)[0].kind
    opacities = cell_shades.opacities(len(least))
    marks = [
        titled(
            "path",
            {"d": path, "opacity": opacities[shade - 1]},
            f"{shown(layer.name, 60)}: {cell_shades.count_words(least, shade)} in one cell",
        )
        for shade, path in cell_shades.paths(shades, columns).items()
    ]
    parts = [
        name,
        upright,
        cell_shades.placed(plot, columns, rows, kind, *marks),
        *([_diagonal(chart, across, up, plot)] if chart.diagonal else []),
        frame.level_axis(across, plot, frame.axis_words(chart.x, sheet.zone), (room.left, room.left + room.width)),
    ]
    return joined(parts), plot.bottom + 2 * LINE + 12


def _names(chart: Bins) -> Sequence[str]:
    """Return the name of each row from the top; none where the axis has values."""
    rows = len(chart.y_edges) - 1
    names = chart.y.categories if chart.y.scale == "category" else ()
    return names[::-1] if len(names) == rows else ()


def _rows(names: Sequence[str], plot: Plot, title: str, left: float) -> Markup:
    """Return the panel behind the rows, their names, and the title above."""
    panel: dict[str, Value] = {"x": plot.left, "y": plot.top, "width": plot.width, "height": plot.height}
    words = label(title, plot.right - left, {"x": left, "y": plot.top - 12, "class": "axis"})
    back = element("rect", {**panel, "class": "panel"})
    return joined([words, back, frame.row_names(names, plot, left)])


def _diagonal(chart: Bins, across: Scale, up: Scale, plot: Plot) -> Markup:
    """Return the line x = y, bent where the bins of the two axes differ."""
    low, high = max(chart.x_edges[0], chart.y_edges[0]), min(chart.x_edges[-1], chart.y_edges[-1])
    values = sorted({low, high, *(edge for edge in (*chart.x_edges, *chart.y_edges) if low < edge < high)})
    points = [f"{plot.x(across.at(value)):.1f} {plot.y(up.at(value)):.1f}" for value in values] if low < high else []
    words = f"{shown(chart.x.title, 60)} = {shown(chart.y.title, 60)}"
    return titled("path", {"d": "M" + "L".join(points), "class": "diagonal"}, words) if points else element("g")


def _scale(axis: Axis, edges: Sequence[float], sheet: Sheet) -> Scale:
    return EdgeScale(edges, frame.scale_of(axis, edges, sheet.zone))


def _rising(chart: Bins) -> bool:
    """Return whether the edges form cells, and no more than can be drawn."""
    for edges in (chart.x_edges, chart.y_edges):
        if len(edges) < 2 or not all(map(isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):  # noqa: PLR2004 one cell
            return False
    return (len(chart.x_edges) - 1) * (len(chart.y_edges) - 1) <= _MOST_CELLS
