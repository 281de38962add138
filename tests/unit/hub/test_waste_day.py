"""The last day's waste on /metrics: the report's own figures, by partition, and of nobody in person."""

from dataclasses import replace
from typing import Any

from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.ledger.waste_day import EVERY_S, MAX_GROUPS, STALE_S, WasteDay
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import HOUR, hour, record

NOW = HOUR + 7200
SETTINGS = LedgerSettings()


def a_store(clock: FakeClock) -> HubStore:
    """Return a store with two partitions and two accounts, half an hour of one GPU each."""
    store = HubStore.open(":memory:", clock)
    upsert_jobs(store, [record(7, "alice"), record(8, "bob", "proj2"), record(9, "bob", "proj2", partition="big")])
    cpus: dict[str, Any] = {"cpu_energy_j": 250.0, "cpu_energy_ms": 1_800_000}
    upsert_hours(store, [hour(7, **cpus), hour(8, gpu_uuid="GPU-b", **cpus), hour(9, gpu_uuid="GPU-c")])
    return store


def values(day: WasteDay) -> dict[tuple[str, ...], float]:
    """Return what is served: name and labels -> value."""
    return {(s.name, *s.labels.values()): s.value for family in day.metrics() for s in family.samples}


def test_the_figures_are_the_reports() -> None:
    """The sums over all partitions are those of the cluster's report over the same time, class by class."""
    clock = FakeClock(NOW)
    store = a_store(clock)
    day = WasteDay(store, SETTINGS, clock)
    day.step()
    found = values(day)
    with store.reader() as db:
        totals = report_document(db, "cluster", "", NOW - 86_400, NOW + 1, SETTINGS, NOW).totals
    for use in ("idle", "low", "moderate", "high", "suspended", "pending", "unknown"):
        told = sum(v for k, v in found.items() if k[0] == "gpuwaste_hub_day_gpu_seconds" and k[-1] == use)
        assert told == getattr(totals, f"{use}_s")
    assert sum(v for k, v in found.items() if k[0] == "gpuwaste_hub_day_wasted_gpu_seconds") == totals.wasted_s
    assert totals.gpu_s == 5400
    assert {k[1]: v for k, v in found.items() if k[0] == "gpuwaste_hub_day_cpu_energy_joules"} == {"gpu": 500.0}
    assert {key[1] for key in found} == {"gpu", "big"}


def test_accounts_are_told_apart_only_where_asked_for_and_users_never() -> None:
    """By default the account is empty; no name of a user stands anywhere, whatever is asked for."""
    clock = FakeClock(NOW)
    store = a_store(clock)
    for by_account, accounts in ((False, {""}), (True, {"proj1", "proj2"})):
        day = WasteDay(store, SETTINGS, clock, by_account=by_account)
        day.step()
        found = values(day)
        assert {key[2] for key in found} == accounts
        assert not {"alice", "bob"} & {text for key in found for text in key}


def test_it_is_counted_now_and_then_and_not_told_when_old() -> None:
    """A job that comes later is seen at the next count; two hours without a count leave no series."""
    clock = FakeClock(NOW)
    store = a_store(clock)
    day = WasteDay(store, SETTINGS, clock)
    day.step()
    upsert_jobs(store, [record(10, "alice", partition="new")])
    day.step()
    assert "new" not in {key[1] for key in values(day)}
    clock.advance(EVERY_S + 1)
    day.step()
    assert "new" in {key[1] for key in values(day)}
    clock.advance(STALE_S + 1)
    assert values(day) == {}


def test_other_thresholds_are_used_at_once() -> None:
    """A reload's thresholds count at the next step, not a quarter of an hour later."""
    clock = FakeClock(NOW)
    day = WasteDay(a_store(clock), SETTINGS, clock)
    day.step()
    before = values(day)
    day.judge_by(replace(SETTINGS, low_below_pct=1.0, high_above_pct=2.0))
    day.step()
    assert values(day) != before


def test_a_new_store_need_not_wait_for_the_first_figures() -> None:
    """Where there is nothing yet, the next step counts again."""
    clock = FakeClock(NOW)
    store = HubStore.open(":memory:", clock)
    day = WasteDay(store, SETTINGS, clock)
    day.step()
    assert values(day) == {}
    upsert_jobs(store, [record(7, "alice")])
    day.step()
    assert {key[1] for key in values(day)} == {"gpu"}


def test_accounts_that_users_make_up_share_one_series() -> None:
    """Where Slurm enforces no associations an account is a user's text: beyond a bound its time counts as other."""
    clock, numbers = FakeClock(NOW), range(1, MAX_GROUPS + 10)
    store = HubStore.open(":memory:", clock)
    upsert_jobs(store, [record(number, "bob", f"{number}" + "x" * 300) for number in numbers])
    upsert_hours(store, [hour(number, gpu_uuid=f"GPU-{number}") for number in numbers])
    day = WasteDay(store, SETTINGS, clock, by_account=True)
    day.step()
    found = values(day)
    seconds = {key: value for key, value in found.items() if key[0] == "gpuwaste_hub_day_gpu_seconds"}
    assert len({key[2] for key in seconds}) == MAX_GROUPS + 1
    assert max(len(key[2]) for key in seconds) == 128
    with store.reader() as db:
        totals = report_document(db, "cluster", "", NOW - 86_400, NOW + 1, SETTINGS, NOW).totals
    assert sum(seconds.values()) == totals.gpu_s
