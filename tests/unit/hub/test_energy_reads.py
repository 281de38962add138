"""What the energy of reports and jobs costs, as the hub answers it."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.views.sites import fact

from gpuwaste.core.scope import ClusterAccount, Scope
from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.core.units import J_PER_KWH
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.energy.energy_types import EnergyCost
from gpuwaste.ledger.energy.site_tariff import SiteTariff
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.reports.job_page import job_page
from gpuwaste.ledger.reports.job_text import job_text
from gpuwaste.ledger.reports.report_question import ReportQuestion
from gpuwaste.ledger.reports.report_text import report_text
from gpuwaste.ledger.reports.usage_page import UsageQuery, usage_page
from gpuwaste.ledger.rollup import Rollup
from gpuwaste.ledger.run_judging import HANG_LIMITS
from gpuwaste.show.environment import Frame
from gpuwaste.show.layout import Look
from gpuwaste.show.machine_formats import table, to_csv
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import HOUR, hour, record
from gpuwaste.views.view_query import ViewQuestion
from gpuwaste.views.view_reads import ViewReads

NOW = HOUR + 10 * 86400
ALL = Scope(user="root", everything=True)
HOURS = "hour,price_per_kwh,g_co2e_per_kwh\n"


def utc(hours: int) -> str:
    """Return the begin of an hour so many after HOUR, as the file has it."""
    return datetime.fromtimestamp(HOUR + 3600 * hours, UTC).isoformat()


@pytest.fixture
def store() -> HubStore:
    """Alice's job draws 1 kWh in one hour and 3 kWh in the next, idle in the first; bob's 2 kWh; carol's is unknown."""
    store = HubStore.open(":memory:", FakeClock(NOW))
    two_hours: dict[str, Any] = {"end": HOUR + 7200, "elapsed_s": 7200}
    upsert_jobs(
        store,
        [record(7, "alice", **two_hours), record(8, "bob", "proj2"), record(9, "carol", "proj3", end=HOUR + 1800)],
    )
    whole: dict[str, Any] = {"t1_ms": (HOUR + 3600) * 1000, "energy_ms": 3_600_000, "proc_seen": True, "final": True}
    idle = hour(7, util_ms={0: 3_600_000}, idle_run_ms=3_600_000, energy_j=J_PER_KWH, idle_energy_j=J_PER_KWH, **whole)
    times: dict[str, Any] = {"hour_utc": HOUR + 3600, "t0_ms": (HOUR + 3600) * 1000, "t1_ms": (HOUR + 7200) * 1000}
    busy = hour(
        7, util_ms={90: 3_600_000}, energy_j=3 * J_PER_KWH, idle_energy_j=0.0,
        **(whole | times),
    )  # fmt: skip
    bob = hour(8, final=True, gpu_uuid="GPU-b", energy_j=2 * J_PER_KWH, energy_ms=1_800_000, idle_energy_j=0.0)
    upsert_hours(store, [idle, busy, bob])
    return store


def reads(store: HubStore, tmp_path: Path, text: str = "", **keys: Any) -> DocumentQueries:
    """Return what answers, with a tariff of these keys and a file of this text."""
    if text:
        path = tmp_path / "hours.csv"
        path.write_text(text)
        keys["hours_file"] = str(path)
    clock = FakeClock(NOW)
    return DocumentQueries(store, LedgerSettings(), clock, None, SiteTariff(EnergyConfig(**keys), clock))


def cost(answers: DocumentQueries, scope: Scope = ALL, **question: Any) -> EnergyCost | None:
    """Return the energy of a report over the time of the jobs."""
    asked = ReportQuestion(start=HOUR, end=HOUR + 7200, **question)
    return answers.report(scope, asked).energy


def test_numbers_alone(store: HubStore, tmp_path: Path) -> None:
    """6 kWh at PUE 1.5 are 9 kWh: 1.80 at 0.20, 0.9 kg at 100 g; a sixth was wasted; carol's GPU was not measured."""
    answers = reads(store, tmp_path, price_per_kwh=0.2, g_co2e_per_kwh=100.0, pue=1.5)
    found = cost(answers, cluster="1")
    assert found is not None
    assert (found.gpu_kwh, found.kwh, found.wasted_kwh) == pytest.approx((6, 9, 1.5))
    assert (found.cost, found.wasted_cost, found.co2e_kg, found.wasted_co2e_kg) == pytest.approx((1.8, 0.3, 0.9, 0.15))
    assert found.measured_share == pytest.approx(9000 / 10800, abs=1e-4)
    alice, bob = cost(answers, user="alice"), cost(answers, account="proj2")
    assert alice is not None
    assert bob is not None
    assert (alice.gpu_kwh, bob.gpu_kwh, bob.wasted_kwh) == pytest.approx((4, 2, 0))
    assert cost(answers, user="carol") is None
    assert cost(answers, Scope(user="bob"), user="bob") == bob


def test_without_prices_no_cost_is_said(store: HubStore, tmp_path: Path) -> None:
    """The defaults: kilowatt-hours, and neither money nor CO2e."""
    found = cost(reads(store, tmp_path), cluster="1")
    assert found is not None
    assert (found.gpu_kwh, found.kwh) == pytest.approx((6, 6))
    assert (found.cost, found.co2e_kg) == (None, None)


def test_prices_by_hour_weigh_each_hour(store: HubStore, tmp_path: Path) -> None:
    """1 kWh at 0.10 and 3 kWh at 0.30 are 1.00 in alice's report and job; in the cluster's bob adds 2 at 0.10."""
    answers = reads(store, tmp_path, f"{HOURS}{utc(0)},0.1,\n{utc(1)},0.3,\n")
    alice, everybody = cost(answers, user="alice"), cost(answers, cluster="1")
    assert alice is not None
    assert everybody is not None
    assert (alice.cost, everybody.cost) == pytest.approx((1.0, 1.2))
    assert (alice.co2e_kg, alice.hours_without_carbon, everybody.hours_without_price) == (None, 2, 0)
    (run,) = answers.job(ALL, "7").runs
    assert run.energy == alice


def test_users_and_days_cost_what_their_own_hours_cost(store: HubStore, tmp_path: Path) -> None:
    """Alice's 4 kWh over two hours cost 1.00, bob's 2 kWh in the cheap one 0.20; carol's cost is not known, not 0.

    Each day has the jobs that ended on it: bob's and carol's, alice's at midnight, and dave's a day later.
    """
    midnight = HOUR - HOUR % 86400 + 86400
    assert midnight == HOUR + 7200
    next_day, hours = midnight + 86400, 26
    upsert_jobs(store, [record(11, "dave", "proj1", start=next_day, end=next_day + 1800, submit=HOUR)])
    moved: dict[str, Any] = {"hour_utc": next_day, "t0_ms": next_day * 1000, "t1_ms": (next_day + 1800) * 1000}
    key = RunKey("gw", 11, next_day)
    upsert_hours(
        store, [hour(11, run_key=key, gpu_uuid="GPU-d", energy_j=J_PER_KWH, energy_ms=1_800_000, final=True, **moved)]
    )
    prices = f"{HOURS}{utc(0)},0.1,100\n{utc(1)},0.3,100\n{utc(hours)},0.5,\n"
    answers = reads(store, tmp_path, prices, pue=2.0)
    report = answers.report(ALL, ReportQuestion(start=HOUR, end=next_day + 3600, cluster="1"))
    users = {row.user: row.energy for row in report.users}
    assert users["carol"] is None
    found = {user: (energy.kwh, energy.cost, energy.co2e_kg) for user, energy in users.items() if energy is not None}
    assert found["alice"] == pytest.approx((8, 2.0, 0.8))
    assert found["bob"] == pytest.approx((4, 0.4, 0.4))
    assert found["dave"][:2] == pytest.approx((2, 1.0))
    assert found["dave"][2] is None
    days = [(row.jobs, row.energy) for row in report.days]
    first, second, third = (energy for _, energy in days if energy is not None)
    assert (first.kwh, first.cost, first.wasted_kwh, first.co2e_kg) == pytest.approx((4, 0.4, 0, 0.4))
    assert (second.kwh, second.cost, second.wasted_kwh, second.co2e_kg) == pytest.approx((8, 2.0, 2, 0.8))
    assert (third.kwh, third.cost, third.co2e_kg, third.hours_without_carbon) == (2, 1.0, None, 1)
    assert first.measured_share == pytest.approx(0.5)
    assert [jobs for jobs, _ in days] == [2, 1, 1]
    text = report_text(report, Look(), energy=True)
    assert re.search(r" KWH +EUR( UNDER-USED JOBS)? USER", text)
    assert "2023-11-15    1 8.00 2.00" in text
    long = replace(report, users=[replace(row, user="u" * 64, wasted_s=1e12, gpu_s=9e12) for row in report.users])
    assert max(map(len, report_text(long, Look(), energy=True).splitlines())) <= 80
    assert [row["cost"] for row in table(report, "users")[1] if "cost" in row] == pytest.approx([2.0, 0.4, 1.0])
    assert to_csv(report, part="days").splitlines()[3].startswith(f"{next_day},1,1800,")
    page = usage_page(report, None, UsageQuery("/", HOUR, next_day + 3600), Frame(path="/cluster", user="root"))
    assert page.count('<th scope="col" class="number">EUR</th>') == 2
    assert '<td class="number" data-label="EUR">2.00</td>' in page


def test_energy_of_cpus_is_beside_that_of_gpus(store: HubStore, tmp_path: Path) -> None:
    """Alice's CPUs drew 2 kWh in her second hour: half of her GPU-time, in no cost; half a window has half of it.

    The sums are the same after her hours are added up by day.
    """
    upsert_hours(store, [
            hour(
                7, seq=9, util_ms={90: 3_600_000}, energy_j=3 * J_PER_KWH, energy_ms=3_600_000, idle_energy_j=0.0,
                hour_utc=HOUR + 3600, t0_ms=(HOUR + 3600) * 1000, t1_ms=(HOUR + 7200) * 1000, final=True,
                cpu_energy_j=2 * J_PER_KWH, cpu_energy_ms=3_600_000,
            )
        ]
    )  # fmt: skip
    answers = reads(store, tmp_path, price_per_kwh=0.1)

    def told() -> list[tuple[float | None, ...]]:
        run = answers.job(ALL, "7").runs[0].energy
        whole = cost(answers, user="alice")
        everybody = cost(answers, cluster="1")
        return [(e.cpu_kwh, e.cpu_measured_share, e.kwh, e.cost) for e in (run, whole, everybody) if e is not None]

    before = told()
    assert before[0] == pytest.approx((2, 0.5, 4, 0.4))
    assert before[1] == before[0]
    assert before[2] == pytest.approx((2, 3600 / 10800, 6, 0.6), abs=1e-4)
    half = answers.report(ALL, ReportQuestion(start=HOUR, end=HOUR + 5400, user="alice")).totals
    assert (half.cpu_energy_j, half.cpu_energy_measured_s) == pytest.approx((J_PER_KWH, 1800))
    text = job_text(answers.job(ALL, "7"), Look(), energy=True)
    assert "CPUs: 2.00 kWh (measured in 50 % of the GPU-time; not in the figures above)" in text
    assert sum(Rollup(store, {**HANG_LIMITS, "hang_sm_ratio": 0.0, "hang_power_ratio": 0.0}).steps(NOW)) == 3
    assert told() == before


def test_the_view_is_priced_as_the_report_is(store: HubStore) -> None:
    """The hub's view has the site's prices: 6 kWh at 0.50 are 3.00, the report's cost."""
    clock = FakeClock(NOW)
    tariff = SiteTariff(EnergyConfig(price_per_kwh=0.5), clock)
    asked = ViewQuestion(HOUR, HOUR + 7200)
    view = ViewReads(store, LedgerSettings(), clock, tariff=tariff).view(ALL, "energy", asked)
    found = cost(DocumentQueries(store, LedgerSettings(), clock, None, tariff), cluster="1")
    assert found is not None
    assert fact(view, "cost") == pytest.approx(found.cost) == pytest.approx(3.0)


def test_users_cost_by_numbers_alone(store: HubStore, tmp_path: Path) -> None:
    """With one price at all times a user's cost is their energy times it, and the users' costs add up to the total."""
    answers = reads(store, tmp_path, price_per_kwh=0.2, pue=1.5)
    report = answers.report(ALL, ReportQuestion(start=HOUR, end=HOUR + 7200, cluster="1"))
    costs = [row.energy.cost or 0 for row in report.users if row.energy is not None]
    assert report.energy is not None
    assert sum(costs) == pytest.approx(report.energy.cost) == pytest.approx(1.8)


def test_clusters_and_accounts_cost_what_their_own_hours_cost(store: HubStore, tmp_path: Path) -> None:
    """East's 1 kWh in the dear hour costs 0.30, gw's 6 kWh 1.20; proj1 has alice's and east's: the rows add up."""
    moved: dict[str, Any] = {"hour_utc": HOUR + 3600, "t0_ms": (HOUR + 3600) * 1000, "t1_ms": (HOUR + 5400) * 1000}
    upsert_jobs(store, [record(7, "erin", cluster="east", end=HOUR + 5400, elapsed_s=5400)])
    key = RunKey("east", 7, HOUR)
    upsert_hours(store, [hour(7, run_key=key, energy_j=J_PER_KWH, energy_ms=1_800_000, final=True, **moved)])
    answers = reads(store, tmp_path, f"{HOURS}{utc(0)},0.1,\n{utc(1)},0.3,\n")
    report = answers.report(ALL, ReportQuestion(start=HOUR, end=HOUR + 7200, cluster="all"))
    clusters = {row.cluster: row.energy for row in report.clusters}
    accounts = {row.account: row.energy for row in report.accounts}
    assert report.energy is not None
    assert accounts.pop("proj3") is None
    for rows, costs in ((clusters, {"east": 0.3, "gw": 1.2}), (accounts, {"proj1": 1.3, "proj2": 0.2})):
        assert {name: energy and energy.cost for name, energy in rows.items()} == pytest.approx(costs)
        assert sum(costs.values()) == pytest.approx(report.energy.cost)
    long = replace(report, clusters=[replace(row, cluster="c" * 64) for row in report.clusters])
    lines = report_text(long, Look(), energy=True).splitlines()
    assert any(line.split()[-3:] == ["KWH", "EUR", "CLUSTER"] for line in lines)
    assert max(map(len, lines)) <= 80
    by_account = lines.index("Energy by account") + 2
    assert [line.split() for line in lines[by_account : by_account + 3]] == [
        ["2", "5.00", "1.30", "proj1"], ["1", "2.00", "0.20", "proj2"], ["1", "-", "-", "proj3"]
    ]  # fmt: skip
    header, east, gw = to_csv(report, part="clusters").splitlines()
    assert dict(zip(header.split(","), east.split(","), strict=True))["cost"] == "0.3"
    assert gw.startswith("gw,3,0,")
    assert next((row["account"], row["users"]) for row in table(report, "accounts")[1]) == ("proj1", 2)
    page = usage_page(report, None, UsageQuery("/", HOUR, HOUR + 7200), Frame(path="/cluster", user="root"))
    assert '<td class="number" data-label="EUR">1.20</td>' in page
    assert answers.report(ALL, ReportQuestion(start=HOUR, end=HOUR + 7200, account="proj1")).accounts == []


def test_a_changed_file_prices_a_report_that_was_asked_before(store: HubStore, tmp_path: Path) -> None:
    """What is kept of an answer is of the prices that it was made with."""
    answers = reads(store, tmp_path, f"{HOURS}{utc(0)},0.1,\n{utc(1)},0.3,\n")
    before = cost(answers, user="bob")
    (tmp_path / "hours.csv").write_text(f"{HOURS}{utc(0)},0.7,\n")
    answers.tariff.use(EnergyConfig(hours_file=str(tmp_path / "hours.csv")))
    after = cost(answers, user="bob")
    assert before is not None
    assert after is not None
    assert (before.cost, after.cost) == pytest.approx((0.2, 1.4))


def test_an_hour_without_a_price_leaves_the_cost_unknown_and_says_so(store: HubStore, tmp_path: Path) -> None:
    """The second hour has no price: alice's cost is not known, bob's is; text and page say how many hours lack it."""
    answers = reads(store, tmp_path, f"{HOURS}{utc(0)},0.1,400\n{utc(1)},,400\n")
    alice, bob = cost(answers, user="alice"), cost(answers, user="bob")
    assert alice is not None
    assert bob is not None
    assert (alice.cost, alice.wasted_cost, alice.hours_without_price) == (None, None, 1)
    assert (alice.co2e_kg, bob.cost) == pytest.approx((1.6, 0.2))
    document = answers.report(ALL, ReportQuestion(user="alice", start=HOUR, end=HOUR + 7200))
    text = report_text(document, Look(), energy=True)
    short = "4.00 kWh (1.00 wasted), cost unknown, 1.60 kg CO2e (0.40 wasted)"
    assert short in " ".join(report_text(document, Look()).split())
    assert "Energy: 4.00 kWh (GPUs, without cooling; measured in 100 % of the GPU-time)" in text
    assert "Wasted: 1.00 kWh (25 %)" in text
    assert "Cost: unknown: 1 hour has no price" in text
    assert "CO2e: 1.60 kg, 0.40 kg of it wasted" in text
    job = answers.job(ALL, "7")
    assert "Cost: unknown: 1 hour has no price" in job_text(job, Look(), energy=True)
    page = job_page(job, Frame(path="/jobs/7", user="alice"))
    assert '<h2 id="energy">Energy of the GPUs</h2>' in page
    assert "<dt>Cost</dt><dd>unknown: 1 hour has no price</dd>" in page


def test_a_job_without_a_measurement_has_no_energy(store: HubStore, tmp_path: Path) -> None:
    """Nothing is said of the energy of a job that no agent measured: no 0, in no rendering."""
    answers = reads(store, tmp_path, price_per_kwh=1.0)
    document = answers.job(ALL, "9")
    assert [run.energy for run in document.runs] == [None]
    assert "Energy" not in job_text(document, Look())
    assert 'id="energy"' not in job_page(document, Frame(path="/jobs/9", user="carol"))


def test_a_coordinator_s_view_of_a_user_is_priced_by_what_it_shows(store: HubStore, tmp_path: Path) -> None:
    """Alice's job in another account, at a dear hour, changes no price of what the coordinator of proj1 may see."""
    upsert_jobs(store, [record(10, "alice", "secret", start=HOUR + 3600, end=HOUR + 7200, elapsed_s=3600)])
    dear: dict[str, Any] = {"hour_utc": HOUR + 3600, "t0_ms": (HOUR + 3600) * 1000, "t1_ms": (HOUR + 7200) * 1000}
    key = RunKey("gw", 10, HOUR + 3600)
    upsert_hours(
        store, [hour(10, run_key=key, gpu_uuid="GPU-c", util_ms={9: 3_600_000}, energy_j=9e6, final=True, **dear)]
    )
    answers = reads(store, tmp_path, f"{HOURS}{utc(0)},0.1,\n{utc(1)},0.3,\n")
    found = cost(answers, Scope(user="carl", accounts=frozenset({ClusterAccount("gw", "proj1")})), user="alice")
    assert found is not None
    assert found.cost == pytest.approx(1.0)


def test_days_that_are_added_up_count_for_their_hours_alike(store: HubStore, tmp_path: Path) -> None:
    """Once hours are added up by day, 4 kWh over two hours cost the mean of both prices; the energy is the same."""
    answers = reads(store, tmp_path, f"{HOURS}{utc(0)},0.1,\n{utc(1)},0.3,\n")
    assert sum(Rollup(store, {**HANG_LIMITS, "hang_sm_ratio": 0.0, "hang_power_ratio": 0.0}).steps(NOW)) == 3
    found = cost(answers, user="alice")
    assert found is not None
    assert (found.gpu_kwh, found.wasted_kwh, found.cost) == pytest.approx((4, 1, 0.8))
    (run,) = answers.job(ALL, "7").runs
    assert run.energy == found


def test_waste_that_is_known_of_a_part_is_said_to_be_of_that_part(store: HubStore, tmp_path: Path) -> None:
    """An older agent's hour, idle for a part of it, adds 4 kWh to the energy and nothing to what is known of waste."""
    upsert_jobs(store, [record(10, "alice")])
    key = RunKey("gw", 10, HOUR)
    upsert_hours(
        store,
        [hour(10, run_key=key, gpu_uuid="GPU-c", util_ms={0: 900_000, 9: 900_000}, energy_j=4 * J_PER_KWH, final=True)],
    )
    document = reads(store, tmp_path).report(ALL, ReportQuestion(user="alice", start=HOUR, end=HOUR + 7200))
    text = report_text(document, Look(), energy=True)
    assert "8.00 kWh (at least 1.00 wasted)" in report_text(document, Look())
    assert "Energy: 8.00 kWh" in text
    assert "Wasted: at least 1.00 kWh (25 % of the energy whose class is known)" in text
