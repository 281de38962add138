"""View waste says what the ledger says, cut at the window's edges."""

from typing import Any

import pytest
from tests.unit.views.sites import fact

from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.findings import CAUSE_ORDER, FINDINGS, NOT_WASTE
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.show.chart import Bars
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import HOUR, hour, record
from gpuwaste.views.catalogue.waste import CAUSE_ROLES
from gpuwaste.views.view import look, view_named
from gpuwaste.views.view_query import ViewQuery, Window

NOW = HOUR + 10 * 86400


@pytest.fixture
def store() -> HubStore:
    """Alice's job idles for half an hour, bob's works; both hold a GPU each from HOUR on."""
    store = HubStore.open(":memory:", FakeClock(NOW))
    upsert_jobs(store, [record(7, "alice"), record(8, "bob", "proj2")])
    idle: dict[str, Any] = {"util_ms": {0: 1_800_000}, "idle_run_ms": 1_800_000, "proc_seen": True}
    upsert_hours(store, [hour(7, final=True, **idle), hour(8, final=True, gpu_uuid="GPU-b")])
    return store


@pytest.mark.parametrize("edges", [(HOUR - 60, HOUR + 3600), (HOUR + 600, HOUR + 3600), (HOUR, HOUR + 900)])
def test_held_and_wasted_are_those_of_the_report(store: HubStore, edges: tuple[int, int]) -> None:
    """Whole, and where an edge cuts the jobs: the same GPU-hours as `gpuwaste report` of the cluster."""
    with store.reader() as db:
        found = look(view_named("waste"), ViewQuery(db, Window(*edges, NOW))).document
        report = report_document(db, "cluster", "", *edges, LedgerSettings(), NOW)
    assert fact(found, "held_hours") == pytest.approx(report.totals.gpu_s / 3600)
    assert fact(found, "wasted_hours") == pytest.approx(report.totals.wasted_s / 3600)
    assert fact(found, "wasted_hours") > 0
    assert (fact(found, "top_user"), fact(found, "top_user_share")) == ("alice", 1)
    assert [row[0] for row in found.rows] == ["alice", "bob"]


def test_users_who_caused_all_waste_are_not_summed_up(store: HubStore) -> None:
    """One user wasted: no sentence that the users with waste caused all of it; of 12 users the first ten are."""
    assert not [sentence for sentence in seen(store).narrative if "of all waste is by" in sentence]
    idle: dict[str, Any] = {"util_ms": {0: 1_800_000}, "idle_run_ms": 1_800_000, "proc_seen": True}
    jobs = range(20, 31)
    upsert_jobs(store, [record(number, f"u{number}") for number in jobs])
    upsert_hours(store, [hour(number, final=True, gpu_uuid=f"GPU-{number}", **idle) for number in jobs])
    assert "83 % of all waste is by 10 users." in seen(store).narrative


def seen(store: HubStore, edges: tuple[int, int] = (HOUR, HOUR + 1800)) -> ViewDocument:
    """Return the view."""
    with store.reader() as db:
        return look(view_named("waste"), ViewQuery(db, Window(*edges, NOW))).document


def test_each_cause_has_a_colour_of_its_own(store: HubStore) -> None:
    """Every finding has a role by its name; a chart draws a cause in it, also where other causes are larger."""
    assert set(CAUSE_ROLES) == set(FINDINGS) - {"low_use"}, "none of its time is waste"
    assert len(set(CAUSE_ROLES.values())) == len(CAUSE_ROLES)

    def roles() -> dict[str, str]:
        (causes,) = (chart for chart in seen(store).charts if "cause" in chart.title)
        assert isinstance(causes, Bars)
        return {one.name: one.role for one in causes.series}

    untouched: dict[str, Any] = {"util_ms": {0: 1_800_000}, "idle_run_ms": 1_800_000, "proc_seen": False}
    upsert_jobs(store, [record(9, "carol", gpus=1)])
    upsert_hours(store, [hour(9, final=True, gpu_uuid="GPU-c", run_key=RunKey("gw", 9, HOUR), **untouched)])
    first = roles()
    upsert_hours(store, [hour(7, seq=2, final=True, util_ms={50: 1_800_000}, idle_run_ms=0)])
    second = roles()
    assert len(first) > len(second) > 0
    assert second.items() <= first.items()


def test_what_is_not_known_is_told_where_there_is_some(store: HubStore) -> None:
    """No sentence speaks of 0 %; where half a GPU-hour has no report, its share is told."""
    assert fact(seen(store), "unknown_share") == 0
    assert not any("unknown" in sentence for sentence in seen(store).narrative)
    upsert_jobs(store, [record(9, "carol", start=HOUR, end=HOUR + 1800)])
    assert "33 % of the GPU-hours are unknown." in seen(store).narrative


def test_a_cluster_without_jobs_wastes_nothing(store: HubStore) -> None:
    """Two clusters, of which one is not there: the figures of the other; that one alone holds nothing."""
    edges = (HOUR - 60, HOUR + 3600)
    with store.reader() as db:
        both = look(view_named("waste"), ViewQuery(db, Window(*edges, NOW, ("gw", "none")))).document
        none = look(view_named("waste"), ViewQuery(db, Window(*edges, NOW, ("none",)))).document
    assert fact(both, "held_hours") == pytest.approx(1.0)
    assert fact(none, "held_hours") == 0
    assert fact(none, "wasted_share") is None


@pytest.mark.parametrize("edges", [(HOUR - 60, HOUR + 3600), (HOUR + 600, HOUR + 3600)])
def test_what_no_agent_reports_is_unknown(store: HubStore, edges: tuple[int, int]) -> None:
    """A job of which no agent tells beside one that was seen: its hours are unknown, as in the report, cut or whole."""
    upsert_jobs(store, [record(9, "carol")])
    with store.reader() as db:
        found = look(view_named("waste"), ViewQuery(db, Window(*edges, NOW))).document
        report = report_document(db, "cluster", "", *edges, LedgerSettings(), NOW)
    unknown: dict[Any, Any] = {row[0]: row[5] for row in found.rows}
    assert unknown == {"alice": 0, "bob": 0, "carol": pytest.approx(report.totals.unknown_s / 3600)}
    assert unknown["carol"] > 0
    assert fact(found, "unknown_share") == pytest.approx(1 / 3)


def stacked(found: ViewDocument) -> dict[str, float]:
    """Return the GPU-hours of the stack of causes, by cause."""
    (chart,) = (chart for chart in found.charts if "cause" in chart.title)
    assert isinstance(chart, Bars)
    return {one.name: sum(y or 0.0 for y in one.y) for one in chart.series}


@pytest.mark.parametrize("edges", [(HOUR - 60, HOUR + 7200), (HOUR + 1800, HOUR + 7200), (HOUR, HOUR + 2700)])
def test_each_wasted_hour_has_one_cause_in_the_stack(store: HubStore, edges: tuple[int, int]) -> None:
    """A job that is idle at its end and short of CPUs has both findings, and each hour of it one cause.

    The stack adds up to the waste of the window, whole or cut; time that looks busy and hangs is no waste.
    """
    began = HOUR
    run: dict[str, Any] = {"start": began, "end": began + 3600, "elapsed_s": 3600, "gpus": 1, "cpus": 8}
    jobs = [record(20, "carol", **run), record(21, "dave", **run), record(22, "erin", **{**run, "gpus": 2})]
    upsert_jobs(store, jobs)
    whole: dict[str, Any] = {"t1_ms": (began + 3600) * 1000, "final": True, "proc_seen": True}
    tail: dict[str, Any] = {
        "util_ms": {0: 2_400_000, 40: 1_200_000}, "idle_run_ms": 2_400_000, "last_active_ms": (began + 2400) * 1000,
        "cpu_s": 8 * 3600 * 0.95,
    }  # fmt: skip
    hang: dict[str, Any] = {"util_ms": {100: 3_600_000}, "power_w_at_full": 50.0, "power_limit_w": 400.0}
    blip: dict[str, Any] = {
        "util_ms": {0: 3_590_000, 5: 10_000}, "idle_run_ms": 3_500_000, "last_active_ms": (began + 600) * 1000,
    }  # fmt: skip
    worked: dict[str, Any] = {
        "util_ms": {0: 1_800_000, 90: 1_800_000}, "idle_run_ms": 1_800_000, "last_active_ms": (began + 1800) * 1000,
    }  # fmt: skip
    upsert_hours(
        store,
        [
            hour(job, gpu_uuid=f"GPU-{name}", run_key=RunKey("gw", job, began), **whole, **of)
            for job, name, of in ((20, "t", tail), (21, "h", hang), (22, "w", worked), (22, "b", blip))
        ],
    )
    found = seen(store, edges)
    assert sum(stacked(found).values()) == pytest.approx(fact(found, "wasted_hours"), abs=0.05)
    kinds = set(stacked(found))
    assert {"idle at the end", "too few CPUs for the GPUs", "one GPU of many"} <= kinds
    assert "hang that looks busy" not in kinds


def test_the_order_of_causes_has_every_finding_of_waste() -> None:
    """Each finding has a place in the order, is time that is no waste, or is of several jobs together."""
    assert {*CAUSE_ORDER, *NOT_WASTE, "many_small_jobs"} == set(FINDINGS)
    assert not set(CAUSE_ORDER) & NOT_WASTE
