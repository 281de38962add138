"""View hours: each GPU-hour of a job is counted as one thing, this month and the month before."""

from typing import Any

import pytest
from tests.unit.views.sites import fact

from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.tally import Tally
from gpuwaste.show.chart import Bars
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import HOUR, hour, record
from gpuwaste.views.catalogue.hours import months, split
from gpuwaste.views.ranking import OVERVIEW
from gpuwaste.views.view import look, view_named
from gpuwaste.views.view_query import ViewQuery, Window

MONTH_S = 30 * 86400
NOW = HOUR + MONTH_S + 86400


def seen(store: HubStore, name: str = "hours", end: int = NOW) -> ViewDocument:
    """Return a view of the last day."""
    with store.reader() as db:
        return look(view_named(name), ViewQuery(db, Window(end - 86400, end, NOW))).document


@pytest.fixture
def store() -> HubStore:
    """Store two GPUs of a month ago, one of them idle, for half an hour each; now one GPU that is idle."""
    store = HubStore.open(":memory:", FakeClock(NOW))
    later = HOUR + MONTH_S
    upsert_jobs(store, [record(7, "alice"), record(8, "bob")])
    upsert_jobs(store, [record(9, "alice", submit=later, start=later, end=later + 1800, elapsed_s=1800)])
    idle: dict[str, Any] = {"util_ms": {0: 1_800_000}, "idle_run_ms": 1_800_000, "proc_seen": True, "final": True}
    new: dict[str, Any] = {"run_key": RunKey("gw", 9, later), "t0_ms": later * 1000, "t1_ms": (later + 1800) * 1000}
    rows = [hour(7, **idle), hour(8, final=True, gpu_uuid="GPU-b")]
    upsert_hours(store, [*rows, hour(9, hour_utc=later, gpu_uuid="GPU-c", **idle, **new)])
    return store


def test_this_month_is_beside_the_last(store: HubStore) -> None:
    """The window is one day, the figures are of two months: all of this one was wasted, half of the last."""
    found = seen(store)
    assert (fact(found, "wasted_share"), fact(found, "before_wasted_share")) == (1, 0.5)
    assert [row[0] for row in found.rows] == ["December 2023 so far", "November 2023"]
    assert found.narrative[0] == (
        "December 2023 so far: 100 % of the 0.5 GPU-hours of jobs were wasted; "
        "November 2023: 50 % of the 1.0 GPU-hours."
    )
    assert found.weight == OVERVIEW
    (chart,) = found.charts
    assert isinstance(chart, Bars)
    for place in range(2):
        assert sum(one.y[place] or 0 for one in chart.series) == pytest.approx(100, abs=0.5)


def test_the_month_of_the_waste_view_agrees(store: HubStore) -> None:
    """The wasted GPU-hours of a month are those of view waste over that month."""
    (name, edges), _ = months(Window(0, NOW, NOW))
    with store.reader() as db:
        waste = look(view_named("waste"), ViewQuery(db, Window(*edges, NOW))).document
    assert name == "December 2023 so far"
    for id_ in ("held_hours", "wasted_share"):
        assert fact(seen(store), id_) == fact(waste, id_)


def test_a_month_without_jobs_has_no_picture(store: HubStore) -> None:
    """Where no job held a GPU this month, the view is one without data and says so."""
    found = seen(store, end=HOUR - 90 * 86400)
    assert (found.weight, found.charts, found.narrative) == (None, [], [])
    assert found.notes == ["No job held a GPU in August 2023, days 1 to 16."]


def test_every_millisecond_is_counted_once() -> None:
    """The kinds add up to what was held, whatever is exempt, pending, suspended and idle for seconds."""
    total = Tally(
        alloc_ms=1000, idle_ms=400, low_ms=50, moderate_ms=100, high_ms=200, suspended_ms=30, pending_ms=20,
        wasted_ms=300, unknown={"gap": 200}, exempt={"resident": 120},
    )  # fmt: skip
    found = split(total)
    assert sum(found.values()) == total.alloc_ms
    assert found == {
        "used": 300, "low": 50, "short": 100, "unexplained": 180, "exempt": 120, "suspended": 30, "unknown": 220
    }  # fmt: skip


@pytest.mark.parametrize(
    ("end", "offset_s", "names"),
    [
        (1_704_067_200, 0, ["December 2023", "November 2023"]),
        (1_704_067_201, 0, ["January 2024, days 1 to 1", "December 2023"]),
        (1_704_067_200, 3600, ["January 2024, days 1 to 1", "December 2023"]),
    ],
)
def test_months_begin_in_the_zone_of_the_window(end: int, offset_s: int, names: list[str]) -> None:
    """A window that ends at midnight of New Year ends December; an hour east of there, it is January."""
    found = months(Window(0, end, end + 86400 * 40, utc_offset_s=offset_s))
    assert [name for name, _ in found] == names
    assert found[0][1][0] == found[1][1][1]
