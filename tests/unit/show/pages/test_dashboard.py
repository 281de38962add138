"""The dashboard: the largest finding first, a small chart of each view, and views without data folded."""

from bench.chart_samples import queue, waits
from msgspec.structs import replace
from tests.unit.show.pages.test_comparison_page import compared
from tests.unit.show.pages.view_documents import view

from gpuwaste.show.chart import Axis, Bars, Bins, Layer, Series
from gpuwaste.show.charts.draw import NARROW
from gpuwaste.views.dashboard import Dashboard, dashboard_of, small
from gpuwaste.views.ranking import OVERVIEW, LostShare, by_finding, weight


def board(*documents: object) -> Dashboard:
    """Return the dashboard of some documents."""
    return dashboard_of(documents, lambda name: f"/{name}")  # type: ignore[arg-type]


def test_the_overview_is_the_picture_and_the_headline() -> None:
    """Where the GPU-hours went is the first line and the large chart; the other views are cards by their finding."""
    found = board(
        view(view="states", weight=1.2),
        view(view="none", weight=None, narrative=[], notes=["No job has a priority."]),
        view(view="hours", weight=OVERVIEW, narrative=["November: 18 % wasted.", "61 % used well."], charts=[waits()]),
        view(view="waste", weight=2.1),
        view(view="jobs", weight=0.0, charts=[]),
    )
    assert (found.headline, list(found.details)) == ("November: 18 % wasted.", ["61 % used well."])
    assert found.picture is not None
    assert [card.link for card in found.cards] == ["/waste", "/states", "/jobs"]
    assert [bool(card.chart) for card in found.cards] == [True, True, False]
    assert f'width="{NARROW}"' in found.cards[0].chart
    assert [(card.link, card.sentence) for card in found.folded] == [("/none", "No job has a priority.")]


def test_without_the_overview_the_largest_finding_is_the_headline() -> None:
    """No samples of GPUs: the headline is the first card's sentence; of no views it says that there is no data."""
    found = board(view(view="states", weight=1.3, narrative=["A third failed."]), view(weight=0.0))
    assert (found.headline, found.picture) == ("A third failed.", None)
    assert board().headline == "No data in this window."


def test_a_comparison_is_a_card_with_its_change() -> None:
    """Its sentence is the largest change; one with no data on both sides is folded."""
    nothing = view(view="x", weight=None, narrative=[], notes=["None."])
    found = board(compared(), compared(view="x", before=nothing, after=nothing, changes=[], narrative=["No change."]))
    assert [card.sentence for card in found.cards] == ["Median wait: 10 min → 20 min (+100 %, more than noise)."]
    assert [card.link for card in found.folded] == ["/x"]


def test_a_small_chart_has_few_names_and_one_grid() -> None:
    """Twenty users are six; layers of a grid are added up; a chart over time stays as it is."""
    names = [f"user{n}" for n in range(20)]
    bars = Bars(
        title="By user", x=Axis(title="User", scale="category", categories=names), y=Axis(title="jobs"),
        at=[float(n) for n in range(20)], series=[Series(name="jobs", role="main", y=list(range(20)))],
    )  # fmt: skip
    few = small(bars)
    assert isinstance(few, Bars)
    assert (list(few.x.categories), len(few.at), list(few.series[0].y)) == (names[:6], 6, list(range(6)))
    axis, edges = Axis(title="x"), [0.0, 1.0, 2.0]
    layers = [Layer(name=role, role=role, counts=[1, 2, 3, 4]) for role in ("completed", "failed")]
    one = small(Bins(title="Grid", x=axis, y=axis, x_edges=edges, y_edges=edges, layers=layers))
    assert isinstance(one, Bins)
    assert [list(layer.counts) for layer in one.layers] == [[2, 4, 6, 8]]
    assert small(queue()) == queue()


def test_lost_gpu_hours_come_before_failed_jobs() -> None:
    """A tenth of the GPU-hours before nine tenths of the jobs; a loss of 0 and a view without a finding are equal."""
    facts = view().facts[:1]
    tenth = [type(facts[0])(id="lost", value=0.1, unit="share", text="10 %", means="", query="")]
    hours, jobs = LostShare("lost", "GPU-hours"), LostShare("lost", "jobs", rest=True)
    assert weight(hours, tenth) > weight(jobs, tenth) == 1.9
    assert weight(hours, facts) == weight(None, tenth) == 0
    everything = [replace(tenth[0], value=1.0)]
    assert weight(hours, everything) < OVERVIEW, "where the GPU-hours went stays the first"
    order = by_finding([view(view=name, weight=of) for name, of in (("a", None), ("b", 0.0), ("c", 1.9), ("d", 2.1))])
    assert [document.view for document in order] == ["d", "c", "b", "a"]
