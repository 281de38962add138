"""Charts as SVG: whole, bounded and readable, whatever the data and the names are."""

import re
import xml.etree.ElementTree as ET
from base64 import b64encode
from hashlib import sha256
from typing import Final

import pytest
from bench.chart_samples import all_kinds, bins
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.show.pages.drawings import (
    HOSTILE,
    LONG,
    NS,
    bars,
    faults_of,
    gantt,
    nasty,
    root_of,
    span,
    texts_of,
    titles_of,
)

from gpuwaste.show.chart import Axis, Bars, Bins, Chart, Grid, Layer, Lines, Series
from gpuwaste.show.charts.draw import NARROW, WIDE, chart_file, chart_svg, file_policy
from gpuwaste.views.dashboard import small

CHARTS: Final[dict[str, Chart]] = {**all_kinds(jobs=10_000), **nasty()}
_LARGEST_B: Final = 300_000


@pytest.mark.long
@pytest.mark.parametrize("size", [NARROW, WIDE])
@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_xml_and_its_texts_stay_apart(name: str, size: int) -> None:
    """Any chart is XML without styles and scripts, of bounded size, with no text outside or over another."""
    assert faults_of(CHARTS[name], size) == []
    assert len(chart_svg(CHARTS[name], size)) < _LARGEST_B


@settings(max_examples=examples(100))
@example(  # the last name that is drawn has its cell at the edge
    values=[*[None] * 35, 0.0, None], scale="linear", unit="", up="linear", name="0\x1b", lying=False
)
@given(
    values=st.lists(st.one_of(st.none(), st.floats()), max_size=40),
    scale=st.sampled_from(["linear", "log", "time", "category"]),
    unit=st.sampled_from(["", "s", "%", "jobs"]),
    up=st.sampled_from(["linear", "log"]),
    name=st.text(max_size=80),
    lying=st.booleans(),
)
def test_any_numbers_and_names_are_drawn(  # noqa: PLR0917 what is drawn by Hypothesis is named
    values: list[float | None], scale: str, unit: str, up: str, name: str, lying: bool
) -> None:
    """Bars, lines and heat maps of any floats and any names are drawn without faults."""
    x = Axis(title=name, scale=scale, unit=unit, categories=[name] * len(values))  # type: ignore[arg-type]
    y = Axis(title=name, scale=up, unit=unit)  # type: ignore[arg-type]
    at = [float(place) if value is None or scale == "category" else value for place, value in enumerate(values)]
    series = [Series(name=name, role="main", y=values), Series(name="b", role="idle", y=values[::-1])]
    charts: list[Chart] = [
        Bars(title=name, x=x, y=y, at=at, series=series, sideways=lying, stacked=not lying),
        Lines(title=name, x=x, y=y, at=at, series=series, low=values, high=values),
        Grid(title=name, x=x, y=y, columns=at, rows=[name], cells=values, unit=unit),
    ]
    for chart in charts:
        assert faults_of(chart, NARROW) == []


def test_one_series_has_a_legend_where_its_colour_is_not_in_the_title() -> None:
    """All jobs completed: the legend says so; failed jobs under "Failed jobs", and plain bars, need none."""
    axis = Axis(title="Jobs", unit="jobs")
    for name, role, title, shown in (
        ("completed", "completed", "Jobs by end state", True),
        ("failed", "failed", "Failed jobs by user", False),
        ("held", "main", "Jobs by day", False),
    ):
        one = Series(name=name, role=role, y=[3.0, 4.0])  # type: ignore[arg-type]
        chart = Bars(title=title, x=Axis(title="Day"), y=axis, at=[0, 1], series=[one])
        assert (name in [text.words for text in texts_of(root_of(chart_svg(chart, WIDE)))]) is shown


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_has_a_name_and_words_for_who_cannot_see_it(name: str) -> None:
    """The drawing is an image with a title and a description, which its ids refer to."""
    root = root_of(chart_svg(CHARTS[name], WIDE, "k7"))
    assert root.attrib["role"] == "img"
    ids = {one.attrib["id"]: one for one in root.iter() if "id" in one.attrib}
    named = [ids[key] for key in root.attrib["aria-labelledby"].split()]
    assert [one.tag for one in named] == [f"{NS}title", f"{NS}desc"]
    assert all(one.text for one in named)
    assert all(key.startswith("k7-") for key in ids)
    for reference in re.findall(r"url\(#([^)]*)\)", chart_svg(CHARTS[name], WIDE, "k7")):
        assert reference in ids


def test_every_bar_says_its_value_and_unit() -> None:
    """Each slot names its category and each series with value and unit; what is not known is called so."""
    titles = titles_of(root_of(chart_svg(bars())))
    assert "a\nidle: 3 GPU-hours" in titles
    assert "b\nidle: not known" in titles


def test_every_cell_of_a_small_heat_map_says_its_value_and_unit() -> None:
    """Each cell names its row, its column and its value with unit."""
    plain = Axis(title="hour", scale="category")
    chart = Grid(title="Queue", x=plain, y=plain, columns=["00", "01"], rows=["Mon"], cells=[4, None], unit="jobs")
    titles = titles_of(root_of(chart_svg(chart)))
    assert {"Mon, 00: 4 jobs", "Mon, 01: not known"} <= set(titles)


@pytest.mark.parametrize("name", ["bars", "lines", "bins", "grid", "bars sideways", "gantt"])
def test_every_mark_has_a_title(name: str) -> None:
    """A mark that is drawn with a role, and each area that is pointed at, has words of its own."""
    root = root_of(chart_svg(CHARTS[name]))
    kinds = re.compile(r"(bar|line|band|not-known|diagonal)\b")
    marks = [one for one in root.iter(f"{NS}path") if kinds.match(one.attrib.get("class", ""))]
    for area in root.iter(f"{NS}g"):
        if area.attrib.get("class", "").split()[:1] in (["areas"], ["cells"], ["spans"]):
            marks += list(area)
    assert marks
    for mark in marks:
        assert mark[0].tag == f"{NS}title"
        assert mark[0].text


def test_what_is_not_known_is_hatched_and_zero_is_not() -> None:
    """A null has a hatched area, a zero has none."""
    hatched = 'class="not-known" fill="url(#chart-hatch)"'
    assert hatched in chart_svg(bars(series=[Series(name="a", role="idle", y=[1, None, 2])]))
    assert hatched not in chart_svg(bars(series=[Series(name="a", role="idle", y=[1, 0, 2])]))


def bars_of(chart: Chart) -> list[ET.Element]:
    """Return the rectangles of a chart's bars."""
    marks = root_of(chart_svg(chart)).iter(f"{NS}rect")
    return [one for one in marks if one.attrib.get("class", "").startswith("bar")]


def test_a_bar_of_a_gantt_chart_has_its_place_and_its_words() -> None:
    """The second and third of four lanes, from 1 h to 2 h of a day; the title has job, node and times."""
    (rect,) = bars_of(gantt())
    panel = re.findall(r'd="M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)[^"]*" class="panel"', chart_svg(gantt()))
    left, top, wide, high = map(float, panel[0])
    assert float(rect.attrib["x"]) == pytest.approx(left + wide / 24, abs=0.2)
    assert float(rect.attrib["width"]) == pytest.approx(wide / 24, abs=0.2)
    assert float(rect.attrib["y"]) == pytest.approx(top + high / 4, abs=0.2)
    assert float(rect.attrib["height"]) == pytest.approx(high / 2, abs=0.2)
    assert rect[0].text == "job 5, gpu1 GPU 1 to 2, Thu 1 Jan 1970 01:00 to Thu 1 Jan 1970 02:00"
    spans = [span(start=-9e4, end=3600.0), span(start=90_000.0, end=99_000.0)]
    cut = bars_of(gantt(spans=spans))
    assert [float(one.attrib["x"]) for one in cut] == [left], "the one is cut at the edge, the other is outside"


@pytest.mark.parametrize("size", [NARROW, WIDE])
def test_rows_of_a_grid_have_their_names_in_full(size: int) -> None:
    """The classes of size are next to their rows, the smallest at the bottom, and no row has an edge as its tick."""
    axis, names = Axis(title="Run time", unit="s", scale="log"), ["1", "2", "3-4", "5-8"]
    chart = Bins(
        title="GPUs against run time", x=axis, y=Axis(title="GPUs", scale="category", categories=names),
        x_edges=[1, 10, 100], y_edges=[0.5, 1, 2, 4, 8],
        layers=[Layer(name="completed", role="completed", counts=[1] * 8)],
    )  # fmt: skip
    found = {text.words: text.base for text in texts_of(root_of(chart_svg(chart, size)))}
    assert sorted(names, key=lambda name: -found[name]) == names
    assert "0.5" not in found


def test_small_charts_are_level() -> None:
    """In the width of a card, charts of each kind with two axes are equally high, up to one line of their legend."""
    charts = [small(all_kinds(jobs=1000)[name]) for name in ("bars", "lines", "bins", "grid")]
    heights = [float(root_of(chart_svg(chart, NARROW)).attrib["height"]) for chart in charts]
    assert max(heights) - min(heights) <= 24, heights


def test_rounded_parts_of_a_whole_end_at_100_percent() -> None:
    """Percentages that add up to 100.02 after rounding have an axis to 100, not to 150."""
    parts = [Series(name=name, role="main", y=[33.34]) for name in ("a", "b", "c")]
    chart = bars(x=Axis(title="Month", scale="category", categories=["May"]), y=Axis(title="%", unit="%"), at=[0],
                 series=parts, sideways=True)  # fmt: skip
    texts = [text.words for text in texts_of(root_of(chart_svg(chart)))]
    assert "100" in texts
    assert not {"120", "140", "150"} & set(texts)


def test_the_longest_name_of_bars_is_in_full() -> None:
    """The room left of the bars is that of the longest name: rounding does not cut its end."""
    for longest in ("user106", "user9", "gpu-node-17", "W.i"):
        axis = Axis(title="user", scale="category", categories=["a", longest, "c"])
        assert longest in [text.words for text in texts_of(root_of(chart_svg(bars(x=axis, sideways=True))))]


def test_a_name_that_is_cut_is_in_full_in_its_title() -> None:
    """A long name ends with an ellipsis, and its title has all of it, up to a bound."""
    account = "group-of-a-professor-with-a-very-long-name-and-more" * 3
    axis = Axis(title="account", scale="category", categories=[account, LONG, "c"])
    root = root_of(chart_svg(bars(x=axis, sideways=True), NARROW))
    cut = [text.words for text in texts_of(root) if text.words.endswith("…")]
    assert len(cut) == 2
    titles = titles_of(root)
    assert account in titles
    assert max(map(len, titles)) <= 1000


def test_a_hostile_name_stays_text() -> None:
    """Markup in a name makes no element, controls and marks of direction are escapes."""
    svg = chart_svg(CHARTS["hostile names"])
    assert "<script" not in svg
    assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", svg)
    assert any(title.startswith("</svg><script>alert(1)") and "\\u202e" in title for title in titles_of(root_of(svg)))
    assert HOSTILE not in svg


@pytest.mark.long
def test_a_scatter_of_any_size_is_small() -> None:
    """100,000 points in four groups on 96 x 64 cells take at most 25 kB, ten times as many points about the same."""
    assert len(chart_svg(bins(100_000))) <= 25_000
    assert len(chart_svg(bins(100_000), NARROW)) <= 25_000


def test_bars_that_are_too_many_are_means_and_say_so() -> None:
    """A bar that stands for several has their mean, and a line below says how many."""
    root = root_of(chart_svg(CHARTS["many bars"]))
    assert "each bar is the mean of 63" in [text.words for text in texts_of(root)]


def test_bars_from_zero_negative_ones_go_down() -> None:
    """A negative value is drawn below the line of 0, which is marked."""
    svg = chart_svg(bars(series=[Series(name="a", role="idle", y=[-1, 1, 0])]))
    d = re.search(r'<path d="M([\d.]+) ([\d.]+)h[\d.]+v[\d.]+h-[\d.]+zM([\d.]+) ([\d.]+)h', svg)
    base = re.search(r'd="M[\d.]+ ([\d.]+)H[\d.]+" class="rule base"', svg)
    assert d is not None
    assert base is not None
    assert float(d[2]) == pytest.approx(float(base[1]), abs=0.1)
    assert float(d[4]) < float(base[1])


def test_the_value_of_a_lying_bar_is_beside_it() -> None:
    """The number of a negative bar is right of 0, not over the bar; that of a positive one right of its end."""
    root = root_of(chart_svg(bars(sideways=True, series=[Series(name="a", role="idle", y=[-5, 3, None])])))
    texts = {text.words: text for text in texts_of(root)}
    ticks = {text.words: (text.left + text.right) / 2 for text in texts_of(root) if text.base == texts["0"].base}
    assert ticks["0"] < texts["-5"].left < ticks["0"] + 10
    assert texts["not known"].left == pytest.approx(texts["-5"].left + 6, abs=1)


def test_a_single_point_is_a_dot() -> None:
    """A point without neighbours is drawn, where a line of one point would not be seen."""
    assert 'class="line dots role-main"' in chart_svg(CHARTS["one point"])


def test_a_file_has_its_stylesheet_and_a_policy_that_allows_it_alone() -> None:
    """The file needs no other one, and the hash in its policy is that of its style element."""
    root = root_of(chart_file(CHARTS["bars"]))
    style = root.find(f"{NS}style")
    assert style is not None
    assert style.text is not None
    digest = b64encode(sha256(style.text.encode()).digest()).decode()
    assert file_policy() == f"default-src 'none'; style-src 'sha256-{digest}'"
    assert not re.search(r"@import|url\(", style.text)
