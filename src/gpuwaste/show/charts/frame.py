"""The frame of the marks: title, legend with its colours and dashes, axes with their units, the plot between them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from math import ceil, inf
from typing import Final

from markupsafe import Markup

from gpuwaste.show.chart import Axis, Layer, Series
from gpuwaste.show.charts.labels import fitted, label, lines_of, width
from gpuwaste.show.charts.scale import Linear, LogScale, Scale, Tick
from gpuwaste.show.charts.svg import Value, element, group, joined, pattern, shown, titled
from gpuwaste.show.charts.time_axis import Time, zone_name

TITLE_SIZE: Final = 17.6  # 16 in bold
LINE: Final = 18
_TITLE_LINE: Final = 24
_SWATCH: Final = 12
_GAP: Final = 8
_NAME: Final = 14.0
"""Pixels between the names of two rows."""
_MOST_NAMED: Final = 12
_LONGEST_NAME: Final = 280
_NARROW: Final = 400
SMALL: Final = 180.0
"""Pixels of the marks of a narrow chart."""
MOST: Final = 12
"""Most series of one chart; more cannot be distinguished."""

_PATTERNS: Final = {"unknown": "hatch", "suspended": "dots"}


@dataclass(frozen=True, slots=True)
class Sheet:
    """The input of every chart: its width, the key of its ids, and the zone of its times."""

    width: int
    key: str
    zone: tzinfo

    @property
    def room(self) -> tuple[float, float]:
        """Its left and right edge."""
        return 0.0, float(self.width)

    def height(self, usual: float) -> float:
        """Return the height of the marks: the usual one; SMALL on the dashboard and on a telephone."""
        return SMALL if self.width < _NARROW else usual


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart's marks with their height, and the description for readers who cannot see them."""

    body: Markup
    height: float
    words: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The rectangle of the marks."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height

    def x(self, part: float) -> float:
        """Return the pixel of a part of the width."""
        return self.left + part * self.width

    def y(self, part: float) -> float:
        """Return the pixel of a part of the height, from below."""
        return self.bottom - part * self.height


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One line of the legend: its text, and the class and fill of its swatch."""

    text: str
    kind: str
    fill: str = ""
    opacity: float = 1.0


def scale_of(axis: Axis, values: Sequence[float], zone: tzinfo) -> Scale:
    """Return the scale of an axis over these values; a category has its index."""
    if axis.scale == "log":
        return LogScale.of(values, axis.unit)
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return Time(low, high, zone) if axis.scale == "time" else Linear(low, high, axis.unit)


def axis_words(axis: Axis, zone: tzinfo) -> str:
    """Return an axis' title with its unit; for times the zone; durations have units at each tick."""
    unit = zone_name(zone) if axis.scale == "time" else "" if axis.unit == "s" else axis.unit
    title = "" if axis.title == axis.unit == "s" else axis.title
    if not unit or unit.casefold() == title.casefold():
        return title
    return f"{title}, {unit}" if title else unit


def head(title: str, entries: Sequence[LegendEntry], sheet: Sheet) -> tuple[Markup, float]:
    """Return the title and the legend, and their lower edge."""
    y, parts = 0.0, []
    for line in lines_of(title, sheet.width, TITLE_SIZE):
        y += _TITLE_LINE
        parts.append(element("text", {"x": 0, "y": y - 6, "class": "title"}, line))
    legend, y = _legend(entries, sheet, y + 4)
    return joined([*parts, legend]), y


def _legend(entries: Sequence[LegendEntry], sheet: Sheet, top: float) -> tuple[Markup, float]:
    named = list(entries[:_MOST_NAMED])
    if more := len(entries) - len(named):
        named.append(LegendEntry(f"and {more} more", ""))
    x, y, parts = 0.0, top, []
    for entry in named:
        swatch = _SWATCH + 6 if entry.kind else 0
        room = min(_LONGEST_NAME, sheet.width - swatch)
        taken = swatch + width(fitted(entry.text, room))
        if x and x + taken > sheet.width:
            x, y = 0.0, y + LINE
        if entry.kind:
            fill: dict[str, Value] = {"fill": entry.fill} if entry.fill else {}
            fill |= {"opacity": entry.opacity} if entry.opacity < 1 else {}
            square: dict[str, Value] = {"x": x, "y": y + 2, "width": _SWATCH, "height": _SWATCH}
            parts.append(element("rect", {**square, "class": f"swatch {entry.kind}", **fill}))
        parts.append(label(entry.text, room, {"x": x + swatch, "y": y + _SWATCH}))
        x += taken + 2 * _GAP
    return group("legend", *parts), y + (LINE + 4 if named else 0)


def room_for_values(scale: Scale, height: float) -> float:
    """Return the pixels that the labels of a vertical axis need."""
    return max((width(tick.text) for tick in upright(scale, height)), default=0.0) + _GAP


def upright(scale: Scale, height: float) -> list[Tick]:
    """Return the ticks of a vertical axis that have room above each other."""
    found: list[Tick] = []
    for tick in scale.ticks(max(2, min(6, int(height / 28)))):
        if not found or (scale.at(tick.value) - scale.at(found[-1].value)) * height >= LINE - 4:
            found.append(tick)
    return found


def value_axis(scale: Scale, plot: Plot, title: str, left: float = 0.0) -> Markup:
    """Return the vertical axis: horizontal lines, values at the left, the title above, so that it is not rotated."""
    rules, base, texts = "", "", []
    for tick in upright(scale, plot.height):
        y = plot.y(scale.at(tick.value))
        line = f"M{plot.left:.1f} {y:.1f}H{plot.right:.1f}"
        if tick.value == 0 and y < plot.bottom - 1:
            base = line
        else:
            rules += line
        texts.append(element("text", {"x": plot.left - 6, "y": y + 4}, tick.text))
    name = label(title, plot.right - left, {"x": left, "y": plot.top - 12, "class": "axis"})
    return joined([name, _rules(rules), _rules(base, " base"), group("tick end", *texts)])


def room_for_names(names: Sequence[str], most: float) -> float:
    """Return the pixels that the names of rows need; of long names at most `most`, and their gap."""
    return min(max(width(shown(name, 60)) for name in names), most) + _GAP + 2


def row_names(names: Sequence[str], plot: Plot, left: float = 0.0) -> Markup:
    """Return the name of each row, the first at the top, between `left` and the plot.

    Where rows are lower than a text, only every n-th has its name.
    """
    high = plot.height / len(names)
    every, room = max(1, ceil(_NAME / high)), plot.left - left - _GAP
    return group(
        "values",
        *(
            label(name, room, {"x": plot.left - 8, "y": plot.top + (place + 0.5) * high + 4, "class": "tick end"})
            for place, name in enumerate(names)
            if name and place % every == 0
        ),
    )


def level_axis(
    scale: Scale, plot: Plot, title: str, room: tuple[float, float], *, across: bool = False, period: float = 0.0
) -> Markup:
    """Return the horizontal axis below the plot, with its texts inside `room`.

    `across` also draws lines over the plot; a text is in the middle of the `period` pixels that begin at its tick.
    """
    rules, texts = "", []
    top = plot.top if across else plot.bottom
    for tick, x in _apart(scale, plot, room, period):
        rules += f"M{plot.x(scale.at(tick.value)):.1f} {top:.1f}V{plot.bottom + 4:.1f}"
        texts.append(element("text", {"x": x, "y": plot.bottom + LINE}, tick.text))
    return joined([_rules(rules), group("tick middle", *texts), _level_title(title, plot, room[0])])


def names_axis(names: Sequence[str], plot: Plot, title: str) -> Markup:
    """Return the names below the plot, each in the middle of its part; only every n-th where the parts are narrow.

    A name at the edge without room even for an ellipsis is left out.
    """
    part = plot.width / max(1, len(names))
    widest = max((width(shown(name, 40)) for name in names), default=0.0)
    every = max(1, ceil((widest + _GAP) / part)) if part else 1
    texts = []
    for index in range(0, len(names), every):
        middle = plot.left + (index + 0.5) * part
        room = min(part * every - 4, 2 * middle, 2 * (plot.right - middle))
        if room >= width("…") or width(shown(names[index], 40)) <= room:
            texts.append(label(names[index], room, {"x": middle, "y": plot.bottom + LINE}))
    return joined([group("tick middle", *texts), _level_title(title, plot, 0.0)])


def unknown_area(d: str, key: str, words: str) -> Markup:
    """Return a hatched area of unknown values."""
    return titled("path", {"d": d, "class": "not-known", "fill": pattern(key, "hatch")}, words)


def empty(top: Markup, y: float, sheet: Sheet, words: str = "No data in this window") -> Drawn:
    """Return a chart without marks: its title and a text instead."""
    text = label(words, sheet.width, {"x": sheet.width / 2, "y": y + 34, "class": "middle muted"})
    return Drawn(joined([top, text]), y + 60, f"{words}.")


def note(words: str, height: float) -> Markup:
    """Return a line below the chart, which is `height` pixels high without it."""
    return element("text", {"x": 0, "y": height + 10, "class": "axis"}, words)


def _level_title(title: str, plot: Plot, left: float) -> Markup:
    words = "percent" if title == "%" else title  # the sign alone looks like a part of the tick above it
    return label(words, plot.right - left, {"x": plot.right, "y": plot.bottom + 2 * LINE, "class": "axis end"})


def _rules(d: str, kind: str = "") -> Markup:
    return element("path", {"d": d, "class": f"rule{kind}"}) if d else Markup()


def _apart(scale: Scale, plot: Plot, room: tuple[float, float], period: float) -> list[tuple[Tick, float]]:
    """Return as many ticks as have room next to each other, with the middle of each text inside the drawing."""
    found: list[tuple[Tick, float]] = []
    for most in (10, 8, 6, 5, 4, 3, 2):
        found, end = [], -inf
        ticks = scale.ticks(most)
        for tick in ticks:
            half, at = width(tick.text) / 2, plot.x(scale.at(tick.value))
            if period and at + period / 2 > plot.right:
                continue
            x = min(room[1] - half, max(room[0] + half, at + period / 2))
            if x - half >= end:
                found.append((tick, x))
                end = x + half + _GAP
        if len(found) >= len(ticks) - bool(period):
            break
    return found


def legend_entries(title: str, series: Sequence[Series | Layer], key: str) -> list[LegendEntry]:
    """Return the legend's lines; none for one series that the title names or whose colour stands for nothing."""
    plain = len(series) == 1 and (series[0].role == "main" or series[0].name.lower() in title.lower())
    return [] if plain else entries(series, key)


def entries(series: Sequence[Series | Layer], key: str) -> list[LegendEntry]:
    """Return the legend's line for each series: the second of a role is `r2`, the third `r3`, up to `r4`."""
    seen: Counter[str] = Counter()
    found = []
    for one in series[:MOST]:
        seen[one.role] += 1
        kind = f"role-{one.role}" + (f" r{(seen[one.role] - 1) % 4 + 1}" if seen[one.role] > 1 else "")
        found.append(
            LegendEntry(shown(one.name), kind, pattern(key, _PATTERNS[one.role]) if one.role in _PATTERNS else "")
        )
    return found
