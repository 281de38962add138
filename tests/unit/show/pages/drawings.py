"""What the tests of charts read from an SVG, and the charts that nobody would draw on purpose."""

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.units import DAY_S
from gpuwaste.show.chart import Axis, Bars, Bins, Chart, Gantt, Grid, Layer, Lines, Row, Series, Span
from gpuwaste.show.charts.draw import chart_svg
from gpuwaste.show.charts.labels import width

NS: Final = "{http://www.w3.org/2000/svg}"
HOSTILE: Final = "</svg><script>alert(1)</script>\"'&\u202egnp.\x00\x1b[31m\n\t\ud800"
LONG: Final = "x" * 10_000
NAN: Final = math.nan
_SIZES: Final = {"title": 16 * 1.1, "name": 12}


@dataclass(frozen=True)
class Text:
    """A text with the rectangle that it takes at most."""

    words: str
    left: float
    right: float
    base: float


def root_of(svg: str) -> ET.Element:
    """Return the root of a drawing, which must be XML; it is ours, and no text in it is trusted by this."""
    return ET.fromstring(svg)  # noqa: S314 made by the code under test


def texts_of(root: ET.Element) -> list[Text]:
    """Return the texts that are seen, by the anchors and sizes of charts.css."""
    found: list[Text] = []
    _collect(root, "", found)
    return found


def titles_of(root: ET.Element) -> list[str]:
    """Return the texts that are shown where somebody points at a mark."""
    return [title.text or "" for title in root.iter(f"{NS}title")]


def faults_of(chart: Chart, size: int) -> list[str]:
    """Return what is wrong with the drawing of a chart at a width: not XML, styles, cut or overlapping texts."""
    svg = chart_svg(chart, size, "key")
    root = root_of(svg)
    _, _, wide, high = map(float, root.attrib["viewBox"].split())
    faults = [f"{one.tag} {one.attrib}" for one in root.iter() if "style" in one.attrib or one.tag == f"{NS}script"]
    if re.search(r"\bnan\b|\binf\b", " ".join(value for one in root.iter() for value in one.attrib.values())):
        faults.append("a coordinate that is no number")
    texts = texts_of(root)
    faults += [
        f"outside: {one}" for one in texts if one.left < -0.6 or one.right > wide + 0.6 or not 0 < one.base < high
    ]
    for index, one in enumerate(texts):
        for other in texts[index + 1 :]:
            if abs(one.base - other.base) < 11 and one.left < other.right - 0.5 and other.left < one.right - 0.5:
                faults.append(f"overlap: {one} {other}")
    return faults


def bars(**changes: object) -> Bars:
    """Return bars with what a test changes of them."""
    plain: dict[str, object] = {
        "title": "Waste",
        "x": Axis(title="account", scale="category", categories=["a", "b", "c"]),
        "y": Axis(title="wasted", unit="GPU-hours"),
        "at": [0, 1, 2],
        "series": [Series(name="idle", role="idle", y=[3, None, 5])],
    }
    return Bars(**(plain | changes))  # type: ignore[arg-type]


def nasty() -> dict[str, Chart]:
    """Return charts with what goes wrong: by name."""
    time, use = Axis(title="t", scale="time"), Axis(title="use", unit="%")
    names = Axis(title=HOSTILE, scale="category", categories=[HOSTILE, LONG, "W" * 60])
    many = [1.7e9 + 60 * place for place in range(20_000)]
    wave = [float(place % 100) for place in range(20_000)]
    two = [Series(name=HOSTILE, role="high", y=[5, 3, 2]), Series(name=LONG, role="idle", y=[1, None, 2])]
    return {
        "hostile names": bars(title=HOSTILE * 3, x=names, series=two, sideways=True),
        "hostile upright": bars(title=LONG, x=names, y=Axis(title=LONG, unit=HOSTILE), series=two),
        "no series": bars(series=[]),
        "empty": bars(at=[], series=[]),
        "no numbers": bars(series=[Series(name="a", role="high", y=[NAN, math.inf, -math.inf])]),
        "short series": bars(series=[Series(name="a", role="high", y=[1])]),
        "negative": bars(series=[Series(name="a", role="high", y=[-5, 3, -1e-9])]),
        "negative sideways": bars(sideways=True, series=[Series(name="a", role="high", y=[-5, 3, -1e-9])]),
        "huge": bars(series=[Series(name="a", role="high", y=[1e99, 1e200, 5e-300])]),
        "log bars": bars(y=Axis(title="jobs", scale="log"), series=[Series(name="a", role="main", y=[0, 9, 1e6])]),
        "wrong places": bars(at=[7, -1, NAN]),
        "many series": bars(series=[Series(name=f"s{index}", role="main", y=[1, 2, 3]) for index in range(99)]),
        "many bars": bars(x=time, at=many, series=[Series(name="a", role="high", y=wave)]),
        "many names": bars(
            x=Axis(title="user", scale="category", categories=[f"user{place}" for place in range(20_000)]),
            at=list(range(20_000)),
            series=[Series(name="a", role="high", y=wave)],
        ),
        "many lines": Lines(
            title="Many", x=time, y=use, at=many, series=[Series(name="a", role="high", y=wave)], low=wave, high=wave
        ),
        "one point": Lines(title="One", x=time, y=use, at=[1.7e9], series=[Series(name="a", role="main", y=[5])]),
        "unsorted": Lines(
            title="Order",
            x=time,
            y=use,
            at=[3e9, 1, NAN, 2e9, 1],
            series=[Series(name="a", role="main", y=[1, 2, 3, 4, 5])],
        ),
        "nothing known": Lines(
            title="None", x=time, y=use, at=[1.7e9, 1.8e9], series=[Series(name="a", role="main", y=[None, NAN])]
        ),
        "far years": Lines(
            title="Years", x=time, y=use, at=[-1e15, 0, 1e15], series=[Series(name="a", role="main", y=[1, 2, 3])]
        ),
        "log with zeros": Lines(
            title="Wait",
            x=time,
            y=Axis(title="wait", unit="s", scale="log"),
            at=[DAY_S * place for place in range(9)],
            series=[Series(name="a", role="main", y=[0, 1, 60, 0, 3600, None, -5, 86400, 1e7])],
        ),
        "log all zero": Lines(
            title="Wait",
            x=time,
            y=Axis(title="wait", scale="log"),
            at=[0, 1],
            series=[Series(name="a", role="main", y=[0, 0])],
        ),
        "line over names": Lines(
            title="Names", x=names, y=use, at=[0, 1, 2], series=[Series(name="a", role="main", y=[1, None, 3])]
        ),
        "no bins": Bins(title="B", x=use, y=use, x_edges=[], y_edges=[1, 0, NAN], layers=two_layers(0)),
        "empty bins": Bins(title="B", x=use, y=use, x_edges=[0, 1, 2], y_edges=[0, 1], layers=two_layers(0)),
        "one bin": Bins(title="B", x=use, y=use, x_edges=[0, 1], y_edges=[0, 1], layers=two_layers(1), diagonal=True),
        "bins with names": Bins(
            title="B",
            x=use,
            y=Axis(title="GPUs", scale="category", categories=[HOSTILE, LONG, "1", ""]),
            x_edges=[0, 1],
            y_edges=[0, 1, 2, 3, 4],
            layers=[*two_layers(1), Layer(name="c", role="failed", counts=[1])],
        ),
        "log bins from 0": Bins(
            title=HOSTILE,
            x=Axis(title=LONG, unit="s", scale="log"),
            y=Axis(title=HOSTILE, scale="log"),
            x_edges=[0, 1, 100, 86400],
            y_edges=[0, 1, 7],
            layers=[Layer(name=HOSTILE, role="failed", counts=[1, 0, 10**12, 4, -3])],
            diagonal=True,
        ),
        "empty grid": Grid(title="G", x=use, y=use, columns=[], rows=["a"], cells=[], unit="%"),
        "hostile grid": Grid(
            title=HOSTILE,
            x=names,
            y=names,
            columns=[HOSTILE, LONG],
            rows=[LONG, HOSTILE],
            cells=[1, None, -2],
            unit=HOSTILE,
        ),
        "large grid": Grid(
            title="G",
            x=time,
            y=use,
            columns=many[:1000],
            rows=[f"node{row}" for row in range(500)],
            cells=wave * 25,
            unit="%",
        ),
        "empty gantt": gantt(rows=[], spans=[]),
        "no time": gantt(start=5.0, end=5.0),
        "hostile gantt": gantt(
            title=HOSTILE,
            rows=[Row(name=HOSTILE, lanes=-3, down=[(NAN, 1.0), (0.0, 1e300)]), Row(name=LONG, lanes=2)],
            spans=[
                span(name=HOSTILE, words=LONG, row=1, first=-5, lanes=1e9, shade=99),
                span(row=7),
                span(row=-1),
                span(start=NAN),
                span(end=math.inf),
                span(first=NAN, shade=-4),
            ],
            shades=[HOSTILE, LONG] * 9,
            note=HOSTILE,
        ),
        "large gantt": gantt(
            rows=[Row(name=f"node{place}", lanes=8) for place in range(9000)],
            spans=[span(row=place % 40, start=place, end=place + 3000.0) for place in range(9000)],
        ),
    }


def gantt(**changes: object) -> Gantt:
    """Return a Gantt chart with what a test changes of it."""
    plain: dict[str, object] = {
        "title": "GPUs by job",
        "x": Axis(title="", scale="time"),
        "start": 0.0,
        "end": 86400.0,
        "rows": [Row(name="gpu1", lanes=4)],
        "spans": [span()],
        "shades": ["waited under 1 min", "longer"],
    }
    return Gantt(**(plain | changes))  # type: ignore[arg-type]


def span(**changes: object) -> Span:
    """Return a bar with what a test changes of it."""
    plain: dict[str, object] = {"row": 0, "first": 1, "lanes": 2, "start": 3600.0, "end": 7200.0, "shade": 1}
    return Span(**({"name": "job 5", "words": "gpu1 GPU 1 to 2"} | plain | changes))  # type: ignore[arg-type]


def two_layers(count: int) -> list[Layer]:
    """Return two layers with this count in their first cell."""
    return [Layer(name=name, role="completed", counts=[count]) for name in ("a", "b")]


def _collect(one: ET.Element, kinds: str, found: list[Text]) -> None:
    kinds = f"{kinds} {one.attrib.get('class', '')}"
    if one.tag == f"{NS}text":
        words = "".join(one.itertext()) if not len(one) else one[-1].tail or ""
        names = kinds.split()
        size = width(words, next((size for name, size in _SIZES.items() if name in names), 13))
        x, part = float(one.attrib["x"]), 1.0 if "end" in names else 0.5 if "middle" in names else 0.0
        found.append(Text(words, x - size * part, x + size * (1 - part), float(one.attrib["y"])))
    for child in one:
        _collect(child, kinds, found)
