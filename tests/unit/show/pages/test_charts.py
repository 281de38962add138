"""The charts: each part is as wide and as high as its share, and what is not known is hatched."""

import re
from html.parser import HTMLParser

import pytest
from tests.unit.show.documents import one_job, read

from gpuwaste.core.units import DAY_S, GpuTimeUnit
from gpuwaste.ledger.day_chart import MAX_DAYS, day_bars
from gpuwaste.ledger.level_charts import level_bar, stretches, strip
from gpuwaste.ledger.reports.job_types import HourCell
from gpuwaste.ledger.reports.report_types import DayRow

LIMITS = read(one_job()).thresholds


class Rects(HTMLParser):
    """The rectangles of an SVG."""

    def __init__(self, svg: str) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []
        self.feed(svg)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "rect":
            self.found.append({name: value or "" for name, value in attrs})


def cell(t0: float, t1: float, mean: float | None, known: float | None = None) -> HourCell:
    """Return what a GPU did between two times."""
    return HourCell(t0=t0, t1=t1, known_s=t1 - t0 if known is None else known, mean_util_pct=mean)


def test_the_level_bar_is_full_whatever_the_shares() -> None:
    """The parts begin where the one before ends, and the last ends at 100 %."""
    rects = Rects(str(level_bar({"high": 1, "low": 1, "idle": 5, "unknown": 2}))).found
    at = 0.0
    for rect in rects:
        assert float(rect["x"].rstrip("%")) == pytest.approx(at, abs=0.002)
        at += float(rect["width"].rstrip("%"))
    assert at == pytest.approx(100, abs=0.01)
    assert [rect["class"] for rect in rects] == ["high", "low", "idle", "unknown"]
    assert Rects(str(level_bar({}))).found == []


def test_neighbours_of_one_level_are_one_stretch() -> None:
    """Two busy hours are one; the idle one after them another; a mean of 33 and of 66 percent is moderate."""
    cells = [cell(0, 100, 90), cell(100, 200, 80), cell(200, 300, 0), cell(300, 400, 33), cell(400, 500, 66)]
    assert stretches(cells, 0, 500, LIMITS) == [(0, 200, "high"), (200, 300, "idle"), (300, 500, "moderate")]


def test_what_was_not_reported_is_hatched() -> None:
    """A gap, a cell of which less than half is known, and one without a mean leave the hatch of the run visible."""
    cells = [cell(0, 100, 90), cell(200, 300, 90), cell(300, 400, None), cell(400, 500, 90, known=40)]
    assert stretches(cells, 0, 500, LIMITS) == [(0, 100, "high"), (200, 300, "high")]
    rects = Rects(str(strip(cells, (0, 500), (0, 1000), LIMITS, "GPU 0"))).found
    assert [(r["class"], r["x"], r["width"]) for r in rects] == [
        ("unknown", "0.000%", "50.000%"), ("high", "0.000%", "10.000%"), ("high", "20.000%", "10.000%"),
    ]  # fmt: skip


def test_cells_beyond_the_run_are_cut() -> None:
    """Nothing is drawn outside of the run's interval."""
    assert stretches([cell(-50, 50, 5), cell(450, 900, 5), cell(600, 700, 5)], 0, 500, LIMITS) == [
        (0, 50, "low"), (450, 500, "low"),
    ]  # fmt: skip


def row(day: int, gpu_s: float, idle_s: float) -> DayRow:
    """Return a day."""
    return DayRow(day=day * DAY_S, jobs=1, gpu_s=gpu_s, idle_s=idle_s, low_s=0, moderate_s=0, high_s=0, wasted_s=idle_s)


def test_the_axis_has_its_unit_and_the_columns_their_heights() -> None:
    """Ten GPU-hours are as high as the last tick; time without a level is hatched."""
    hours = GpuTimeUnit.of([10 * 3600])
    svg = str(day_bars([row(10, 36_000, 36_000), row(12, 18_000, 7200)], 10 * DAY_S, 13 * DAY_S, hours))
    heights = [(r["class"], float(r["height"].rstrip("%"))) for r in Rects(svg).found]
    assert heights == [("idle", 74.0), ("idle", pytest.approx(14.8)), ("unknown", pytest.approx(22.2))]
    assert re.findall(r'text-anchor="end">([^<]+)<', svg) == ["0", "5", "10"]
    assert 'aria-label="GPU-hours by day, at most 10.0 on one day"' in svg


def test_days_without_jobs_are_narrow_and_named() -> None:
    """Of five days two have jobs: these get most of the width; each of the others is a dot with its date."""
    svg = str(day_bars([row(10, 60, 0), row(14, 60, 0)], 10 * DAY_S, 15 * DAY_S, GpuTimeUnit.of([120])))
    middles = [float(r["x"].rstrip("%")) + float(r["width"].rstrip("%")) / 2 for r in Rects(svg).found]
    assert middles == pytest.approx([100 * 0.5 / 2.9, 100 * 2.4 / 2.9], abs=0.01)
    assert re.findall(r"<title>(\S+) UTC: no jobs", svg) == ["1970-01-12", "1970-01-13", "1970-01-14"]


def test_a_window_of_years_has_bounded_bars() -> None:
    """The last hundred days are drawn, whatever is asked for; of many days, only the highest one has its number."""
    svg = str(day_bars([row(day, 1, 1) for day in range(4000)], 0, 4000 * DAY_S, GpuTimeUnit.of([4000])))
    assert len(Rects(svg).found) == MAX_DAYS
    assert len(re.findall('text-anchor="middle"', svg)) <= 10
