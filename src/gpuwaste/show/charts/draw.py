"""A chart as SVG: inside a page, which has the stylesheet, or as a separate file.

The SVG is generated on the server without a library: each library measured for such charts breaks the strict
Content-Security-Policy of the pages, needs a script, or has hundreds of kilobytes; a stacked year is drawn faster
without one, and 100,000 points counted on a grid take some 25 kB here where a library sends 900. There are no colours
here: a mark has a class for its role, and `static/charts.css` has the colours for light, dark and print.
"""

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, tzinfo
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import ceil
from typing import Final

from markupsafe import Markup

from gpuwaste.show.chart import Bars, Bins, Chart, Gantt, Grid, Lines
from gpuwaste.show.charts import bar_chart, bin_chart, gantt_chart, heat_map, line_chart
from gpuwaste.show.charts.frame import LINE, Drawn, Sheet, empty
from gpuwaste.show.charts.labels import label
from gpuwaste.show.charts.svg import NAMESPACE, Value, element, joined, patterns, shown

WIDE: Final = 960
"""Pixels of a chart on a desktop: a page has at most 1100."""
NARROW: Final = 328
"""Pixels of a chart on a telephone: 360 less the margins."""


HALF: Final = 520
"""Pixels of a chart next to another one."""
_GAP: Final = 24


def chart_svg(chart: Chart, width: int = WIDE, key: str = "chart", zone: tzinfo = UTC) -> str:
    """Return a chart as an SVG element for a page with charts.css; `key` is unique in the page and starts each id."""
    sheet = Sheet(width, key, zone)
    return _root(chart.title, _drawn(chart, sheet), sheet, style="")


def chart_file(chart: Chart, zone: tzinfo = UTC) -> str:
    """Return a chart as a self-contained file, with its stylesheet inside."""
    sheet = Sheet(WIDE, "chart", zone)
    return _root(chart.title, _drawn(chart, sheet), sheet, style=stylesheet()) + "\n"


def pair_file(names: Sequence[str], pair: Sequence[Chart | None], zone: tzinfo = UTC) -> str:
    """Return two charts side by side, each below its name, as a self-contained file."""
    parts, words, height = [], [], 0.0
    for place, (name, chart) in enumerate(zip(names, pair, strict=True)):
        sheet, x = Sheet(HALF, f"side{place}", zone), place * (HALF + _GAP)
        drawn = empty(Markup(), 0.0, sheet, "No such chart") if chart is None else _drawn(chart, sheet)
        below = element("g", {"transform": f"translate({x} {LINE})"}, patterns(sheet.key), drawn.body)
        parts += [label(name, HALF, {"x": x, "y": LINE - 6, "class": "muted"}), below]
        words.append(f"{shown(name)}: {drawn.words}")
        height = max(height, LINE + drawn.height)
    title = next(chart.title for chart in pair if chart is not None)
    both = Drawn(joined(parts), height, " ".join(words))
    return _root(title, both, Sheet(2 * HALF + _GAP, "chart", zone), style=stylesheet()) + "\n"


def stylesheet() -> str:
    """Return the text of charts.css."""
    return _stylesheet()


def file_policy() -> str:
    """Return the Content-Security-Policy of a chart's file: load nothing, and only its own style."""
    digest = b64encode(sha256(stylesheet().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'"


@cache
def _stylesheet() -> str:
    return files("gpuwaste.show").joinpath("static", "charts.css").read_text(encoding="utf-8")


def _root(title: str, drawn: Drawn, sheet: Sheet, style: str) -> str:
    height = ceil(drawn.height)
    attributes: dict[str, Value] = {
        "xmlns": NAMESPACE,
        "class": "chart",
        "viewBox": f"0 0 {sheet.width} {height}",
        "width": sheet.width,
        "height": height,
        "role": "img",
        "aria-labelledby": f"{sheet.key}-title {sheet.key}-words",
    }
    return element(
        "svg",
        attributes,
        element("title", {"id": f"{sheet.key}-title"}, shown(title)),
        element("desc", {"id": f"{sheet.key}-words"}, drawn.words),
        *([element("style", {}, style)] if style else []),
        patterns(sheet.key),
        drawn.body,
    )


def _drawn(chart: Chart, sheet: Sheet) -> Drawn:
    match chart:
        case Bars():
            return bar_chart.draw(chart, sheet)
        case Lines():
            return line_chart.draw(chart, sheet)
        case Bins():
            return bin_chart.draw(chart, sheet)
        case Grid():
            return heat_map.draw(chart, sheet)
        case Gantt():
            return gantt_chart.draw(chart, sheet)
