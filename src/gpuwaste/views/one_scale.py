"""Two charts of one view on one scale and with one legend, so that equal marks are equal values."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from msgspec.structs import replace

from gpuwaste.show.chart import Bars, Bins, Chart, Grid, Layer, Lines, Series


def one_scale(before: Sequence[Chart], after: Sequence[Chart]) -> tuple[list[Chart], list[Chart]]:
    """Return the charts; those of one title and kind have one scale, the others stay as they are."""
    first, second = list(before), list(after)
    places = {(type(chart), chart.title): place for place, chart in enumerate(first)}
    for own, chart in enumerate(second):
        other = places.get((type(chart), chart.title))
        if other is not None:
            first[other], second[own] = _pair(first[other], chart)
    return first, second


def _pair(before: Chart, after: Chart) -> tuple[Chart, Chart]:
    match before, after:
        case (Bars() as one, Bars() as two) if one.y == two.y:
            y = replace(one.y, reach=_ends([*_stacks(one), *_stacks(two)]))
            legend = {series.name: series for series in (*one.series, *two.series)}.values()
            return replace(one, y=y, series=_all_of(legend, one)), replace(two, y=y, series=_all_of(legend, two))
        case (Lines() as one, Lines() as two) if one.y == two.y:
            reach = _ends([*_points(one), *_points(two)])
            return replace(one, y=replace(one.y, reach=reach)), replace(two, y=replace(two.y, reach=reach))
        case (Bins() as one, Bins() as two):
            return _bins(one, two)
        case (Grid() as one, Grid() as two) if one.unit == two.unit:
            most = max((abs(cell) for chart in (one, two) for cell in chart.cells if cell is not None), default=0.0)
            return replace(one, reach=most), replace(two, reach=most)
    return before, after


def _all_of(legend: Iterable[Series], chart: Bars) -> list[Series]:
    """Return the series of the legend: those that the chart lacks have nothing in its bars."""
    own = {series.name: series for series in chart.series}
    nothing = [0.0 if chart.stacked else None] * len(chart.at)
    return [own.get(series.name) or replace(series, y=nothing) for series in legend]


def _ends(values: Iterable[float]) -> list[float]:
    """Return the lowest value, the lowest above 0 (where a logarithmic scale begins) and the highest."""
    known = sorted(values)
    return sorted({known[0], *[value for value in known if value > 0][:1], known[-1]}) if known else []


def _stacks(chart: Bars) -> list[float]:
    """Return where the bars end: of stacked ones the sums above and below 0."""
    found = []
    for values in zip(*(series.y for series in chart.series), strict=True):
        known = [value for value in values if value is not None]
        if chart.stacked:
            found += [sum(max(value, 0.0) for value in known), sum(min(value, 0.0) for value in known)]
        else:
            found += known
    return found


def _points(chart: Lines) -> list[float]:
    lines = [*(series.y for series in chart.series), chart.low, chart.high]
    return [value for line in lines for value in line if value is not None]


def _bins(one: Bins, two: Bins) -> tuple[Bins, Bins]:
    """Return both over the longer edges, where those of one go on as those of the other."""
    across, up = _longer(one.x_edges, two.x_edges), _longer(one.y_edges, two.y_edges)
    if across is None or up is None:
        return one, two
    most = max((max(layer.counts, default=0) for chart in (one, two) for layer in chart.layers), default=0)
    first, second = (
        replace(chart, x_edges=across, y_edges=up, layers=_over(chart, len(across) - 1, len(up) - 1), reach=most)
        for chart in (one, two)
    )
    return first, second


def _longer(one: Sequence[float], two: Sequence[float]) -> Sequence[float] | None:
    if any(None not in (a, b) and a != b for a, b in zip_longest(one, two)):
        return None
    return max(one, two, key=len)


def _over(chart: Bins, columns: int, rows: int) -> list[Layer]:
    """Return the layers on a larger grid."""
    own = len(chart.x_edges) - 1
    found = []
    for layer in chart.layers:
        lines = [layer.counts[at : at + own] for at in range(0, len(layer.counts), own)]
        filled = [count for line in lines for count in (*line, *[0] * (columns - own))]
        found.append(replace(layer, counts=[*filled, *[0] * (columns * rows - len(filled))]))
    return found
