"""Charts that are compared have one scale: the same mark is the same value on both sides."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.views.sites import DAY, MONTH, document, job
from tests.unit.views.test_views import MONTH_LONG, busy

from gpuwaste.show.chart import Axis, Bars, Bins, Gantt, Grid, Layer, Lines, Series
from gpuwaste.views.compare import one_scale

_COUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def bars(*values: float | None, title: str = "Held", stacked: bool = True) -> Bars:
    """Return bars of one series."""
    series = [Series(name="held", role="main", y=values)]
    axis = Axis(title="GPU-hours", unit="GPU-hours")
    return Bars(title=title, x=Axis(title="Day"), y=axis, at=range(len(values)), series=series, stacked=stacked)


def bins(counts: list[int]) -> Bins:
    """Return one row of counts."""
    edges = [10.0**place for place in range(len(counts) + 1)]
    layers = [Layer(name="jobs", role="main", counts=counts)]
    axis = Axis(title="Time", unit="s", scale="log")
    return Bins(title="Time", x=axis, y=axis, x_edges=edges, y_edges=[0.5, 1.0], layers=layers)


def test_bars_reach_as_far_as_those_beside_them() -> None:
    """Stacks of 3 and 40 both reach 0 and 40; what is not known is left out."""
    first, second = one_scale([bars(3, None)], [bars(40, 2)])
    assert [chart.y.reach for chart in (*first, *second) if isinstance(chart, Bars)] == [[0.0, 2.0, 40.0]] * 2
    assert replace(second[0], y=bars().y) == bars(40, 2)


def test_bars_have_one_legend() -> None:
    """What only one side has is 0 in the stacks of the other, in the same place and role; beside, it is not known."""
    cause = Series(name="idle tail", role="low", y=[7.0])
    for stacked, nothing in ((True, 0.0), (False, None)):
        one, two = bars(3, stacked=stacked), replace(bars(40, stacked=stacked), series=[cause])
        (first,), (second,) = one_scale([one], [two])
        assert isinstance(first, Bars)
        assert isinstance(second, Bars)
        assert first.series == [*one.series, replace(cause, y=[nothing])]
        assert second.series == [replace(one.series[0], y=[nothing]), cause]


def test_a_chart_without_its_like_stays_as_it_is() -> None:
    """Another title, or another unit, has a scale of its own."""
    other = replace(bars(5), y=Axis(title="CPU-hours", unit="CPU-hours"))
    assert one_scale([bars(3, title="Steps")], [bars(40)]) == ([bars(3, title="Steps")], [bars(40)])
    assert one_scale([other], [bars(40)]) == ([other], [bars(40)])


def test_lines_reach_over_their_bands() -> None:
    """The lowest value, the lowest above 0, and the highest, of lines and bands of both."""
    wait, series = Axis(title="Wait", unit="s", scale="log"), [Series(name="p50", role="main", y=[0, 5])]
    one = Lines(title="Waits", x=Axis(title="Hour"), y=wait, at=[0, 1], series=series)
    two = replace(one, series=[Series(name="p50", role="main", y=[7, None])], low=[2, None], high=[90, None])
    for chart in (*one_scale([one], [two])[0], *one_scale([one], [two])[1]):
        assert isinstance(chart, Lines)
        assert chart.y.reach == [0, 2, 90]


@given(_COUNTS, _COUNTS)
def test_bins_have_the_longer_edges_and_the_same_counts(one: list[int], two: list[int]) -> None:
    """A grid that goes on longer widens the other one with zeros; no count moves or is lost."""
    first, second = one_scale([bins(one)], [bins(two)])
    long = max(len(one), len(two))
    for chart, counts in ((first[0], one), (second[0], two)):
        assert isinstance(chart, Bins)
        assert len(chart.x_edges) == long + 1
        assert chart.layers[0].counts == counts + [0] * (long - len(counts))
        assert chart.reach == max(*one, *two, 0)


def test_rows_are_added_above() -> None:
    """A grid of two columns and one row keeps its row at the bottom of a larger one."""
    layers = [Layer(name="jobs", role="main", counts=[1, 2, 3, 4, 5, 6])]
    large = replace(bins([1, 2, 3]), y_edges=[0.5, 1.0, 2.0], layers=layers)
    (small,), (same,) = one_scale([bins([7, 8])], [large])
    assert isinstance(small, Bins)
    assert small.layers[0].counts == [7, 8, 0, 0, 0, 0]
    assert same == replace(large, reach=8)


def test_rows_have_the_names_of_the_longer_axis() -> None:
    """Sizes of one window go to 4 GPUs, those of the other to 1: both have all the names."""
    names, edges = ["1", "2", "3-4"], [0.5, 1.0, 2.0, 4.0]
    small = replace(bins([7]), y=Axis(title="GPUs", scale="category", categories=names[:1]), y_edges=edges[:2])
    large = replace(bins([1]), y=replace(small.y, categories=names), y_edges=edges)
    for first, second in (one_scale([small], [large]), one_scale([large], [small])):
        assert [chart.y.categories for chart in (*first, *second) if isinstance(chart, Bins)] == [names, names]


def test_grids_share_their_shades() -> None:
    """The darkest shade is the largest value of both."""
    one = Grid(title="Q", x=Axis(title="Day"), y=Axis(title="H"), columns=["a"], rows=["0"], cells=[3.0], unit="jobs")
    first, second = one_scale([one], [replace(one, cells=[None])])
    assert [getattr(chart, "reach") for chart in (*first, *second)] == [3.0, 3.0]  # noqa: B009


def test_views_of_two_months_pair_their_charts() -> None:
    """Every chart of a view has a partner in the same view of other jobs, and both have the same scale."""
    for name in ("jobs", "waits", "limits", "sizes", "queue", "states"):
        charts = document(busy(), name, MONTH_LONG).charts, document(busy(9), name, MONTH_LONG).charts
        for one, two in zip(*one_scale(*charts), strict=True):
            assert (one.title, type(one)) == (two.title, type(two))
            assert not isinstance(one, Gantt)
            assert not isinstance(two, Gantt)
            assert getattr(one, "reach", one.y.reach) == getattr(two, "reach", two.y.reach)
            assert getattr(one, "x_edges", None) == getattr(two, "x_edges", None)
    empty = document([job(1)], "waits", (MONTH + DAY, MONTH + 2 * DAY)).charts
    assert one_scale(empty, empty)
