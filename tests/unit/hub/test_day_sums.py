"""Sums of days: after whatever changes they are those of the judged runs, and reports are the same without them."""

import random
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest
from tests.examples import few
from tests.unit.hub.test_judged_packing import UNTIL, filled
from tests.unit.hub.test_judging import LEDGER, STOP, STRICT, judging
from tests.unit.store.test_rollup import DAY, NOW, row, run, same

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import set_partitions, upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.judged_run import JudgedRun, RunSums
from gpuwaste.ledger.judged_runs import TAKEN_RUNS, judged_runs
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.ledger.reports.report_types import Scope
from gpuwaste.ledger.rollup import JudgedPacking
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.ledger.tally import ENERGY, Tally
from gpuwaste.store.hub.hub_store import HubStore

pytestmark = [pytest.mark.long, pytest.mark.drawn]

SUBJECTS: tuple[tuple[Scope, str], ...] = (("cluster", ""), ("account", "a"), ("user", "user1"))
WINDOWS = ((0, NOW), (DAY + 3 * DAY_S + 1234, DAY + 30 * DAY_S + 99), (DAY + 5 * DAY_S, DAY + 9 * DAY_S))
LATE = run(2, 1, 2, user="user1")  # a run of test_judged_packing's site


def asked(store: HubStore, sql: str) -> list[dict[str, Any]]:
    """Return the rows of a statement."""
    with store.reader() as db:
        cursor = db.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def summed(store: HubStore) -> set[tuple[int, int]]:
    """Return the rules and days that have sums."""
    return {(one["rules"], one["day"]) for one in asked(store, "SELECT * FROM summed_days")}


def check(store: HubStore) -> None:
    """Compare each sum of the days with a sum in Python over their judged runs."""
    days = summed(store)
    runs: dict[Any, list[JudgedRun]] = {}
    for one in asked(store, "SELECT * FROM judged"):
        day = one["rules"], one["end"] // DAY_S * DAY_S
        if day in days:
            key = *day, one["cluster"], one["user"], one["account"], one["partition"]
            runs.setdefault(key, []).append(JudgedRun.from_row(one))
    stored = {_key(one): one for one in asked(store, "SELECT * FROM day_sums") if _key(one)[:2] in days}
    reasons: dict[Any, dict[Any, int]] = {}
    for one in asked(store, "SELECT * FROM day_reasons"):
        if _key(one)[:2] in days:
            reasons.setdefault(_key(one), {})[one["of"], one["what"], one["reason"]] = one["ms"]
    assert stored.keys() == runs.keys()
    for key, some in runs.items():
        own, shared = Tally.sum(r.own for r in some), Tally.sum(r.shared for r in some if r.shared is not None)
        for name, tally in (("own", own), ("shared", shared)):
            told = {n: v for n, v in tally.to_row().items() if n not in {"unknown", "exempt", *ENERGY[1:]}}
            assert stored[key][name] == pytest.approx(told)
        assert reasons.get(key, {}) == {
            (of, what, reason): ms
            for of, tally in (("own", own), ("shared", shared))
            for what in ("unknown", "exempt")
            for reason, ms in getattr(tally, what).items()
        }
        assert {name: stored[key][name] for name in ENERGY[1:]} == pytest.approx(
            {name: getattr(own, name) for name in ENERGY[1:]}
        )
        assert stored[key]["jobs"] == len(some)
        assert stored[key]["under_jobs"] == sum(r.under_devices > 0 for r in some)
        assert stored[key]["asked_devices"] == sum(r.asked_devices for r in some)
        assert stored[key]["level_ms"] == [sum(ms) for ms in zip(*(r.level_ms for r in some), strict=True)]


def _key(one: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(one[name] for name in ("rules", "day", "cluster", "user", "account", "partition"))


def reports(store: HubStore, ledger: LedgerSettings) -> dict[str, Any]:
    """Return reports of everybody, an account and a user over all time, and over windows that cut runs and days."""
    with store.reader() as db:
        return {
            f"{scope} {window}": report_document(db, scope, name, *window, ledger, NOW).to_json()
            for scope, name in SUBJECTS
            for window in (WINDOWS[1:2] if few() else WINDOWS)
        }


def late_hour(store: HubStore) -> None:
    upsert_hours(store, [row(LATE, 1, 0, random.Random(5))])


def told_anew(store: HubStore) -> None:
    upsert_jobs(store, [replace(LATE, end=(LATE.end or 0) + 3 * HOUR_S, elapsed_s=5 * HOUR_S)])


def another_run(store: HubStore) -> None:
    upsert_jobs(store, [run(9001, 60, 40, user="user1")])


def whole_nodes(store: HubStore) -> None:
    set_partitions(store, "gw", {"": True})


def packed(store: HubStore) -> None:
    assert sum(JudgedPacking(store, 20).steps(UNTIL + DAY_S))


def other_thresholds(store: HubStore) -> None:
    judging(store, STRICT, NOW, step_runs=50).step(STOP)


@pytest.mark.parametrize("change", [late_hour, told_anew, another_run, whole_nodes, packed, other_thresholds])
def test_the_sums_of_days_are_those_of_their_runs(change: Callable[[HubStore], None]) -> None:
    """Sums are right at once after a change, are made again, and reports without them have the same numbers."""
    store, ledger = filled(), STRICT if change is other_thresholds else LEDGER
    judging(store, now=NOW, step_runs=50).step(STOP)
    check(store)
    every = {day for _, day in summed(store)}
    assert len(every) > 40
    change(store)
    check(store)
    assert (summed(store) == {(1, day) for day in every}) == (change in {packed, another_run})  # it is not judged yet
    changed = reports(store, ledger)
    judging(store, ledger, NOW, step_runs=50).step(STOP)
    check(store)
    assert {day for _, day in summed(store)} == every
    told = reports(store, ledger)
    same(changed, told)
    with store.writing() as db:
        db.execute("DELETE FROM summed_days")
    same(told, reports(store, ledger))
    store.close()


def test_a_user_of_many_runs_has_the_same_sums() -> None:
    """A user's runs that are too many to be read once give the same sums, days and findings."""
    store = filled()
    judging(store, now=NOW, step_runs=50).step(STOP)
    for window in WINDOWS:
        told: list[list[Any]] = []
        for most in (3, TAKEN_RUNS):
            with (
                store.reader() as db,
                judged_runs(db, Selection(*window, user="user1"), LEDGER, NOW, taken_runs=most) as runs,
            ):
                told.append([asdict(RunSums.of(runs.sums().values())), runs.days(), runs.findings(None), runs.cut()])
        assert told[0][0]["jobs"] > 3
        same(told[0], told[1])
    store.close()
