"""Two windows or two systems side by side: the changes, and whether they exceed the variation between days.

Their charts have one scale and one legend, so that equal marks are equal values.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

from msgspec.structs import replace

from gpuwaste.core.bootstrap import difference
from gpuwaste.show.chart import Bars, Bins, Chart, Grid, Layer, Lines, Series
from gpuwaste.show.view_document import Change, ComparisonDocument, Fact, value_text
from gpuwaste.views.narrative import narrate_changes
from gpuwaste.views.view import Viewed

_BESIDE: Final = "unknown"
"""Facts about time that no agent reported: they limit the trust in the others, and are never first in the changes."""
METHOD: Final = (
    "More than noise: 0 is outside the 95 % interval of the difference (bootstrap over days). One in twenty changes is "
    "outside by chance."
)
UNTESTED: Final = "Both sides need 7 days with data to test whether a change is more than noise."


def compare(before: Viewed, after: Viewed) -> ComparisonDocument:
    """Return the changes of the facts that both sides have."""
    first = {fact.id: fact for fact in before.document.facts}
    named = {fact.id.partition("_")[0] for fact in (*before.document.facts, *after.document.facts) if not fact.unit}
    pairs = [(first[fact.id], fact) for fact in after.document.facts if fact.id in first and _comparable(fact, named)]
    changes = [change for pair in pairs if (change := _change(*pair, before, after)) is not None]
    changes.sort(
        key=lambda c: (not c.beyond_noise, c.beyond_noise is None, c.id.startswith(_BESIDE), -_weight(c), c.id)
    )
    charts = one_scale(before.document.charts, after.document.charts)
    return ComparisonDocument(
        view=after.document.view,
        title=after.document.title,
        before=replace(before.document, charts=charts[0]),
        after=replace(after.document, charts=charts[1]),
        changes=changes,
        narrative=narrate_changes(changes),
        notes=[METHOD if any(change.beyond_noise is not None for change in changes) else UNTESTED] if changes else [],
    )


def _comparable(fact: Fact, named: set[str]) -> bool:
    """Return whether a fact is about the same thing on both sides: top_user may be two different users."""
    return bool(fact.unit) and fact.id.partition("_")[0] not in named


def _change(before: Fact, after: Fact, first: Viewed, second: Viewed) -> Change | None:
    if not isinstance(before.value, int | float) or not isinstance(after.value, int | float):
        return None
    ends = None
    if after.id in first.samples and after.id in second.samples:
        ends = difference(first.samples[after.id], second.samples[after.id])
    return Change(
        id=after.id,
        means=after.means,
        unit=after.unit,
        before=before.value,
        after=after.value,
        before_text=before.text,
        after_text=after.text,
        difference=after.value - before.value,
        text=_text(before.value, after.value, after.unit),
        low=None if ends is None else ends[0],
        high=None if ends is None else ends[1],
        beyond_noise=None if ends is None else not ends[0] <= 0 <= ends[1],
    )


def _text(before: float, after: float, unit: str) -> str:
    if unit == "share":
        return f"{(after - before) * 100:+.1f} points"
    if not before:
        return f"+{value_text(after, unit)}" if after else "no difference"
    return f"{(after - before) / abs(before) * 100:+,.0f} %"


def _weight(change: Change) -> float:
    """Return the size of a change, 0 to 1, independent of its unit."""
    whole = abs(change.before) + abs(change.after)
    return abs(change.difference) / whole if whole else 0.0


def one_scale(before: Sequence[Chart], after: Sequence[Chart]) -> tuple[list[Chart], list[Chart]]:
    """Return the charts; those of one title and kind get one scale, the others are unchanged."""
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
    """Return the series of the legend: those missing in the chart are empty."""
    own = {series.name: series for series in chart.series}
    nothing = [0.0 if chart.stacked else None] * len(chart.at)
    return [own.get(series.name) or replace(series, y=nothing) for series in legend]


def _ends(values: Iterable[float]) -> list[float]:
    """Return the lowest value, the lowest above 0 (where a logarithmic scale begins) and the highest."""
    known = sorted(values)
    return sorted({known[0], *[value for value in known if value > 0][:1], known[-1]}) if known else []


def _stacks(chart: Bars) -> list[float]:
    """Return the ends of the bars: for stacked ones the sums above and below 0."""
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
    """Return both over the longer edges, if the edges of one continue those of the other."""
    across, up = _longer(one.x_edges, two.x_edges), _longer(one.y_edges, two.y_edges)
    if across is None or up is None:
        return one, two
    most = max((max(layer.counts, default=0) for chart in (one, two) for layer in chart.layers), default=0)
    y = max(one.y, two.y, key=lambda axis: len(axis.categories))
    first, second = (
        replace(chart, y=y, x_edges=across, y_edges=up, layers=_over(chart, len(across) - 1, len(up) - 1), reach=most)
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
