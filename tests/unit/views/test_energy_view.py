"""View energy: kilowatt-hours by day and account are the report's, and what is not known is not told."""

from typing import Any

import pytest
from tests.unit.views.sites import fact

from gpuwaste.core.units import J_PER_KWH
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.energy.tariff import EnergyPrice, Tariff
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.show.chart import Bars
from gpuwaste.show.view_document import Column, ViewDocument
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import HOUR, hour, record
from gpuwaste.views.view import look, view_named
from gpuwaste.views.view_query import ViewQuery, Window

NOW = HOUR + 10 * 86400
DAY = HOUR - HOUR % 86400
NO_PRICES = Tariff()
EDGES = (DAY, DAY + 2 * 86400)


@pytest.fixture
def store() -> HubStore:
    """Alice wastes her 1 kWh, bob works for 3 kWh on the next day; carol's GPU is not measured."""
    store = HubStore.open(":memory:", FakeClock(NOW))
    later = {"start": HOUR + 86400, "end": HOUR + 88200, "submit": HOUR}
    upsert_jobs(store, [record(7, "alice"), record(8, "bob", "proj2", **later), record(9, "carol", "proj3")])
    idle: dict[str, Any] = {"util_ms": {0: 1_800_000}, "idle_run_ms": 1_800_000, "idle_energy_j": J_PER_KWH}
    moved = {name: getattr(hour(8), name) + 86_400_000 for name in ("t0_ms", "t1_ms")}
    key = RunKey("gw", 8, HOUR + 86400)
    told: dict[str, Any] = {"final": True, "energy_ms": 1_800_000}
    busy: dict[str, Any] = {"run_key": key, "hour_utc": HOUR + 86400, "gpu_uuid": "GPU-b", "idle_energy_j": 0.0}
    upsert_hours(
        store, [hour(7, energy_j=J_PER_KWH, **idle, **told), hour(8, energy_j=3 * J_PER_KWH, **busy, **moved, **told)]
    )
    upsert_hours(store, [hour(9, final=True, gpu_uuid="GPU-c")])
    return store


def seen(store: HubStore, edges: tuple[int, int] = EDGES, tariff: Tariff = NO_PRICES) -> ViewDocument:
    """Return the view."""
    with store.reader() as db:
        return look(view_named("energy"), ViewQuery(db, Window(*edges, NOW), tariff=tariff)).document


@pytest.mark.parametrize("edges", [EDGES, (HOUR + 900, DAY + 2 * 86400), (HOUR, HOUR + 600)])
def test_energy_is_that_of_the_report(store: HubStore, edges: tuple[int, int]) -> None:
    """Whole, and where an edge cuts a job: the same kilowatt-hours and the same waste as the cluster's report."""
    found = seen(store, edges)
    with store.reader() as db:
        totals = report_document(db, "cluster", "", *edges, LedgerSettings(), NOW).totals
    assert totals.energy_j
    assert totals.wasted_energy_j is not None
    assert fact(found, "energy_kwh") == pytest.approx(totals.energy_j / J_PER_KWH)
    assert fact(found, "wasted_kwh") == pytest.approx(totals.wasted_energy_j / J_PER_KWH)
    assert fact(found, "wasted_share") == pytest.approx(totals.wasted_energy_share, abs=1e-4)


def test_days_and_accounts(store: HubStore) -> None:
    """Each account and user has a line, the largest first, each day its bars; what was not measured has no number."""
    found = seen(store)
    assert found.rows == [
        ["proj2", "bob", 3, 0, 0, 1], ["proj1", "alice", 1, 1, 1, 1], ["proj3", "carol", None, None, None, 0]
    ]  # fmt: skip
    by_day, by_account, by_user = found.charts
    assert isinstance(by_day, Bars)
    assert isinstance(by_account, Bars)
    assert isinstance(by_user, Bars)
    assert by_user.x.categories == ["bob", "alice"]
    assert {one.name: list(one.y) for one in by_day.series} == {"wasted": [1, 0], "not wasted": [0, 3]}
    assert by_account.x.categories == ["proj2", "proj1"]
    assert found.narrative == [
        "The GPUs of jobs used 4.00 kWh, 2.00 kWh per day.",
        "Energy was measured in 67 % of the GPU-time.",
        "1.00 kWh were wasted, 25 % of the 4.00 kWh for which this is known.",
        "Account proj2 used most: 3.00 kWh, 75 % of all energy.",
        "User bob used most: 3.00 kWh, 75 % of all energy.",
    ]


def test_each_hour_counts_at_its_own_price(store: HubStore) -> None:
    """At 0.20 in alice's hour and 0.50 in bob's, and PUE 2, lines, days and the sum cost 0.40, 3.00 and 3.40."""
    prices = {HOUR: EnergyPrice(0.2), HOUR + 86400: EnergyPrice(0.5)}
    found = seen(store, tariff=Tariff(EnergyPrice(None, 100.0), 2.0, hours=prices, priced_by_hour=True))
    assert [(column.name, column.unit) for column in found.columns[-2:]] == [("cost", "EUR"), ("co2e_kg", "kg")]
    costs = {row[1]: row[-2:] for row in found.rows}
    assert costs["bob"] == pytest.approx([3.0, 0.6])
    assert costs["alice"] == pytest.approx([0.4, 0.2])
    assert costs["carol"] == [None, None]
    assert fact(found, "cost") == pytest.approx(3.4)
    by_day = found.charts[1]
    assert isinstance(by_day, Bars)
    assert list(by_day.series[0].y) == pytest.approx([0.4, 3.0])
    assert "With cooling this costs 3.40 EUR; 0.85 EUR of it was wasted." in found.narrative


def test_energy_of_cpus_has_a_column_where_it_was_measured(store: HubStore) -> None:
    """Bob's CPUs took 0.5 kWh: the last column, one sentence, and no other figure; alice's are not known."""
    before = seen(store)
    with store.reader() as db:
        db.execute("UPDATE hours SET cpu_energy_j = 1.8e6, cpu_energy_ms = 1800000 WHERE job_id = 8")
    found = seen(store)
    assert list(found.columns) == [*before.columns, Column(name="cpu_kwh", title="CPUs", unit="kWh")]
    assert found.rows == [[*row, 0.5 if row[1] == "bob" else None] for row in before.rows]
    words = "The CPUs of these jobs used another 0.50 kWh, measured in 33 % of the GPU-time."
    assert found.narrative == [*before.narrative, words]


def test_an_hour_without_a_price_leaves_its_costs_unknown(store: HubStore) -> None:
    """Bob's hour has no price: neither his line, nor his day, nor the sum has a cost; alice's line has."""
    found = seen(store, tariff=Tariff(hours={HOUR: EnergyPrice(0.2)}, priced_by_hour=True))
    assert {row[1]: row[-2] for row in found.rows} == {"bob": None, "alice": pytest.approx(0.2), "carol": None}
    assert fact(found, "cost") is None
    by_day = found.charts[1]
    assert isinstance(by_day, Bars)
    assert list(by_day.series[0].y) == [pytest.approx(0.2), None]


def test_nothing_measured_is_nothing_said(store: HubStore) -> None:
    """Without a measurement there is no sentence, no chart and no 0."""
    with store.reader() as db:
        db.execute("UPDATE hours SET energy_j = NULL, energy_ms = NULL, idle_energy_j = NULL")
    found = seen(store)
    assert fact(found, "energy_kwh") is None
    assert (found.charts, [row[2] for row in found.rows]) == ([], [None, None, None])
    assert not any("kWh" in sentence for sentence in found.narrative)
