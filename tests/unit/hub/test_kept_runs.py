"""Runs that are judged together: reports of them are those that judge their own, and what changes is never missed."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec import to_builtins
from tests.unit.hub.test_judging import LEDGER, STOP, judging
from tests.unit.store.test_rollup import DAY, NOW, new_store, row, run, same

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import set_partitions, upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.open_runs import FRESH_S, OLD_S, OpenRunJudge, OpenRunSnapshot, OutdatedError, SharedRuns, Window
from gpuwaste.ledger.reports.report_builder import report_document, report_totals
from gpuwaste.ledger.reports.report_types import Scope
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock

pytestmark = pytest.mark.long

TAKEN = DAY + 8 * DAY_S + 7 * HOUR_S + 1800
OPEN: Window = (DAY + 5 * DAY_S, None)
PAST: Window = (DAY + 2 * DAY_S, DAY + 5 * DAY_S)
WINDOWS = (OPEN, PAST)
SUBJECTS: tuple[tuple[Scope, str], ...] = (("cluster", ""), ("user", "user1"))
OTHER = (DAY + DAY_S + 1234, DAY + 6 * DAY_S + 99)  # cuts runs, and is not kept
STILL_OPEN = run(9002, 5 * 24 - 5, 24, user="user1", state="RUNNING", end=None, elapsed_s=None)
STRADDLER = run(9003, 5 * 24 - 2, 4, user="user1")


def site() -> HubStore:
    """Return a store whose runs are judged, with one open run and one that ended, both across a window's edge."""
    store, rng = new_store(), random.Random(8)
    jobs = [run(1 + u + 3 * d, d * 24 + u, 2, user=f"user{u}") for d in range(8) for u in range(3)]
    upsert_jobs(store, [*jobs, STILL_OPEN, STRADDLER])
    upsert_hours(store, [row(job, 0, hour, rng) for job in jobs for hour in range(2)])
    for one, hours in ((STILL_OPEN, 20), (STRADDLER, 4)):
        upsert_hours(store, [row(one, 0, hour, rng) for hour in range(hours)])
    judging(store, now=TAKEN, step_runs=50).step(STOP)
    return store


def taken(store: HubStore, windows: tuple[Window, ...] = WINDOWS, judge: OpenRunJudge | None = None) -> OpenRunSnapshot:
    found = (judge or OpenRunJudge(store)).take(LEDGER, TAKEN, windows, 0)
    assert found is not None
    return found


def reports(store: HubStore, kept: OpenRunSnapshot | None) -> dict[str, Any]:
    """Return reports and totals of everybody, an account and a user, as of an instant."""
    found: dict[str, Any] = {}
    with store.reader() as db:
        for scope, name in SUBJECTS:
            for start, end in (*WINDOWS, OTHER):
                asked = (scope, name, start, TAKEN if end is None else end, LEDGER, TAKEN)
                found[f"{scope} {start}"] = report_document(db, *asked, kept=kept).to_json()
        found["totals"] = to_builtins(report_totals(db, "user", "user1", PAST[0], OPEN[0], LEDGER, TAKEN, kept=kept))
    return found


def test_reports_of_kept_runs_are_those_that_judge_their_own() -> None:
    """Every number is the same, whether a window's parts are kept or not."""
    store = site()
    own = reports(store, None)
    assert own[f"user {OPEN[0]}"]["notes"]
    kept = taken(store)
    assert kept.runs >= 1
    same(own, reports(store, kept))
    same(own, reports(store, taken(store, ())))
    store.close()


def test_parts_of_ended_runs_are_judged_once() -> None:
    """The next time the parts of runs that had ended are taken over, and reports are the same."""
    store, own = site(), {}
    judge = OpenRunJudge(store)
    first, second = taken(store, judge=judge), taken(store, judge=judge)
    tables = [{w: kept._parts[w].ended.table for w in WINDOWS} for kept in (first, second)]
    assert tables[0] == tables[1]
    own = reports(store, None)
    same(own, reports(store, first))  # who began with what was kept before ends with it
    same(own, reports(store, second))
    store.close()


def late_hour(store: HubStore) -> None:
    upsert_hours(store, [row(STRADDLER, 1, 0, random.Random(5))])


def told_anew(store: HubStore) -> None:
    upsert_jobs(store, [replace(STRADDLER, end=(STRADDLER.end or 0) + 1800, elapsed_s=4 * HOUR_S + 1800)])


def another_run(store: HubStore) -> None:
    upsert_jobs(store, [run(9004, 4 * 24, 40, user="user1")])


def whole_nodes(store: HubStore) -> None:
    set_partitions(store, "gw", {"": True})


@pytest.mark.parametrize("change", [late_hour, told_anew, another_run, whole_nodes])
def test_what_changed_of_ended_runs_is_seen_at_once(change: Callable[[HubStore], None]) -> None:
    """What was kept is refused until the runs are judged again, and parts that changed are never shown."""
    store = site()
    judge = OpenRunJudge(store)
    kept = taken(store, judge=judge)
    change(store)
    with pytest.raises(OutdatedError):
        reports(store, kept)
    judging(store, now=TAKEN, step_runs=50).step(STOP)
    own = reports(store, None)
    if change is not whole_nodes:  # open runs hold whole nodes from the next time on
        same(own, reports(store, kept))
    again = taken(store, judge=judge)
    same(own, reports(store, again))
    store.close()


def test_a_run_that_ends_meanwhile_is_open_as_of_that_instant() -> None:
    """A run that ended and was judged since counts once, as it was."""
    store = site()
    own = reports(store, None)
    kept = taken(store)
    elapsed_s = TAKEN + 30 - STILL_OPEN.run_key.start
    upsert_jobs(store, [replace(STILL_OPEN, state="COMPLETED", end=TAKEN + 30, elapsed_s=elapsed_s)])
    judging(store, now=NOW, step_runs=50).step(STOP)
    told = reports(store, kept)
    keys = [key for key in own if str(OTHER[0]) not in key]
    same({key: own[key] for key in keys}, {key: told[key] for key in keys})
    store.close()


def test_a_window_after_that_instant_is_refused() -> None:
    """What was kept knows nothing of what came later."""
    store = site()
    kept = taken(store)
    with store.reader() as db, pytest.raises(OutdatedError):
        report_document(db, "cluster", "", OPEN[0], TAKEN + 1, LEDGER, TAKEN + 1, kept=kept)
    store.close()


def test_runs_are_judged_together_while_somebody_reads() -> None:
    """Who reads first judges their own; others share what is made then, a minute long; few runs are never shared."""
    store, clock = site(), FakeClock(TAKEN)
    shared = SharedRuns(store, LEDGER, clock, least=1)
    assert shared.current(OPEN) is None
    shared.worker.turn()
    kept = shared.current(OPEN)
    assert kept is not None
    assert set(kept.windows) == {OPEN}
    shared.worker.turn()
    assert shared.current(OPEN) is kept
    shared.current(PAST)
    shared.worker.turn()
    more = shared.current(PAST)
    assert more is not None
    assert set(more.windows) == {OPEN, PAST}
    clock.advance(FRESH_S + 1)
    assert shared.current(OPEN) is more
    shared.worker.turn()
    assert shared.current() is not more
    clock.advance(OLD_S + 1)
    assert shared.current() is None
    few = SharedRuns(store, LEDGER, clock)
    for _ in range(2):
        assert few.current(OPEN) is None
        few.worker.turn()
    store.close()
