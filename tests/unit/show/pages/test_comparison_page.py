"""The page of a comparison: what changed, the charts beside each other on one scale, and a form that keeps its link."""

import re
from typing import Any

import pytest
from bench.chart_samples import queue, stacked, waits
from msgspec.structs import replace
from tests.unit.show.pages.drawings import root_of
from tests.unit.show.pages.test_view_page import Reading
from tests.unit.show.pages.view_documents import view

from gpuwaste.show.chart import Bars, Chart, Lines
from gpuwaste.show.charts.draw import chart_svg
from gpuwaste.show.environment import Frame
from gpuwaste.show.view_document import Change, ComparisonDocument
from gpuwaste.show.view_page import ViewForm
from gpuwaste.views.compare import one_scale
from gpuwaste.views.comparison_page import comparison_page, pair_files

RISE = Change(
    id="wait_p50_s", means="median wait", unit="s", before=600, after=1200, before_text="10 min", after_text="20 min",
    difference=600, text="+100 %", low=300, high=900, beyond_noise=True,
)  # fmt: skip
SHARE = Change(
    id="wait_long_share", means="share of long waits", unit="share", before=0.2, after=0.1, before_text="20 %",
    after_text="10 %", difference=-0.1, text="-10.0 points", low=-0.2, high=0.05, beyond_noise=False,
)  # fmt: skip


def compared(**changes: Any) -> ComparisonDocument:
    """Return a comparison of January with December, and with what a test changes of it."""
    plain: dict[str, Any] = {
        "view": "waits",
        "title": "Waits",
        "before": view(start=1_764_547_200, end=1_767_225_600),
        "after": view(),
        "changes": [RISE, SHARE],
        "narrative": ["Median wait: 10 min → 20 min (+100 %, more than noise)."],
        "notes": ["A bootstrap over days."],
    }
    return ComparisonDocument(**(plain | changes))


def read(document: ComparisonDocument, form: ViewForm | None = None) -> Reading:
    """Return what a browser finds in the page."""
    frame = Frame(path="/analytics/waits", links={"csv": "/analytics/waits.csv?compare=previous"})
    return Reading(comparison_page(document, frame, ("/analytics/waits?a", "/analytics/waits?b"), form or ViewForm()))


def test_the_first_line_says_what_changed() -> None:
    """The heading is the largest change; each change has its interval and whether it is more than noise."""
    found = read(compared())
    assert found.said("h1").startswith("Median wait: 10 min → 20 min")
    tags = [tag for tag, _ in found.tags]
    assert tags.index("h1") < tags.index("select"), "the answer is the first line"
    cells = " ".join(found.words["td"])
    assert "Median wait 10 min 20 min +100 % more than noise: +5 min to +15 min" in cells
    assert "Share of long waits 20 % 10 % -10.0 points within noise: -20.0 points to +5.0 points" in cells
    assert found.words["h2"][:3] == ["What changed", "Before", "After"]


def test_no_change_is_a_short_headline() -> None:
    """Where every change is within noise, the heading says so in one line, and nothing repeats the table."""
    found = read(compared(changes=[SHARE], narrative=["No change is more than noise."]))
    assert found.said("h1") == "No change is more than noise."
    assert "share of long waits" not in found.said("p")


def test_what_was_not_tested_has_no_column() -> None:
    """Without an interval there is no column of tests, and unchanged figures are one line instead of rows."""
    untested = [replace(one, low=None, high=None, beyond_noise=None) for one in (RISE, SHARE)]
    found = read(compared(changes=[*untested, replace(untested[0], id="x", means="longest wait", difference=0.0)]))
    assert [" ".join(words.split()) for words in found.words["th"]] == ["Figure", "Before", "After", "Change"]
    assert "The same on both sides: longest wait." in found.said("p")
    assert "not known" not in " ".join(found.words["td"])


def test_the_charts_of_both_sides_alternate() -> None:
    """Each title has the chart of before, then that of after, for a desk and a telephone; ids are there once."""
    found = read(compared())
    assert [drawing["width"] for drawing in found.charts()] == ["520", "328"] * 4
    ids = [str(attributes["id"]) for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not [attributes for _, attributes in found.tags if "style" in attributes]
    assert not found.foreign_scripts()


def test_a_chart_that_one_side_lacks_is_named() -> None:
    """A view that has one chart before and two after says where there is none."""
    found = read(compared(before=view(charts=[waits()])))
    assert len(found.charts()) == 6
    assert "Before: no such chart." in found.said("p")


def test_a_pair_of_charts_is_a_file() -> None:
    """Each pair is one SVG with both names; a chart that one side lacks is named there; ids are there once."""
    first, second = (draw() for draw in pair_files(compared(before=view(charts=[waits()]))))
    for text in (first, second):
        words = "".join(root_of(text).itertext())
        assert "Before" in words
        assert "After" in words
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
    assert ("No such chart" in first, "No such chart" in second) == (False, True)


def test_two_systems_are_called_by_their_names() -> None:
    """Sides with other clusters have these as names, whatever is in them."""
    hostile = "<script>alert(1)</script>"
    found = read(compared(before=view(clusters=["c1"]), after=view(clusters=[hostile])))
    assert found.words["h2"][1:3] == ["c1", hostile]
    assert not found.foreign_scripts()


def test_nothing_known_on_both_sides() -> None:
    """Without changes there is a sentence instead of a table."""
    found = read(compared(changes=[], narrative=[]))
    assert found.said("h1") == "Waits: no change."
    assert "No figure is known on both sides" in found.said("p")


def test_the_form_keeps_what_the_link_names() -> None:
    """A link with two windows keeps both when only the button is pressed; one with days offers these days."""
    found = read(compared(), ViewForm(days=None, linked=True, kept={"start": 5, "other_end": 3}, several=True))
    hidden = {one["name"]: one["value"] for one in found.all("input") if one.get("type") == "hidden"}
    assert hidden == {"start": "5", "other_end": "3"}
    options = [one.get("value") for one in found.all("option")]
    assert options == ["7", "30", "90", "365", "", "", "none", "previous"]
    assert {"clusters", "other_clusters"} <= {one.get("name") for one in found.all("input")}
    again = read(compared(), ViewForm(days=14, compare="previous"))
    chosen = [one["value"] for one in again.all("option") if "selected" in one]
    assert chosen == ["14", "previous"]


def _ticks(chart: Chart) -> list[str]:
    """Return the texts of the upright axis."""
    return re.findall(r">([^<]+)</text>", chart_svg(chart).split('<g class="tick end">')[1].split("</g>")[0])


@pytest.mark.parametrize("chart", [stacked(40), waits()])
def test_a_drawn_scale_reaches_the_other_chart(chart: Bars | Lines) -> None:
    """Marks a hundredth as high have another axis alone, and the same one beside the larger ones."""
    small = replace(chart, series=[replace(one, y=[y and y / 100 for y in one.y]) for one in chart.series])
    assert _ticks(small) != _ticks(chart)
    (first,), (second,) = one_scale([small], [chart])
    assert _ticks(first) == _ticks(second)


def test_drawn_shades_reach_the_other_chart() -> None:
    """A heat map of small values is pale beside one of large values, which stays as it is."""
    small = replace(queue(), cells=[value and value / 100 for value in queue().cells])
    (pale,), (dark,) = one_scale([small], [queue()])
    assert chart_svg(pale) != chart_svg(small)
    assert chart_svg(dark) == chart_svg(queue())
