"""What was judged in the order of users: the same reports before, meanwhile, after; and other thresholds anew."""

import random

import pytest
from tests.unit.hub.test_judging import LEDGER, STOP, STRICT, documents, judging
from tests.unit.store.test_rollup import DAY, NOW, new_store, row, run, same

from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.rollup import JudgedPacking
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.table_parts import STRETCH_S

pytestmark = pytest.mark.long

UNTIL = DAY - DAY % STRETCH_S + STRETCH_S
USERS = 6


def filled() -> HubStore:
    """Return a store with one job a day of each user over 40 days."""
    store, rng = new_store(), random.Random(3)
    jobs = [run(1 + u + d * USERS, d * 24 + u, 2, user=f"user{u}") for d in range(40) for u in range(USERS)]
    upsert_jobs(store, jobs)
    upsert_hours(store, [row(job, 0, i, rng) for job in jobs for i in range(2)])
    return store


def users(store: HubStore) -> list[str]:
    """Return the users of the judged runs that ended before UNTIL, in the order of the file."""
    with store.reader() as db:
        rows = db.execute('SELECT "user" FROM judged WHERE "end" < $until ORDER BY rowid', {"until": UNTIL}).fetchall()
    return [str(user) for (user,) in rows]


def test_each_users_judged_runs_lie_together() -> None:
    """The rows of a stretch stand in the order of users, and reports are the same before, after each step and after."""
    store = filled()
    judging(store, now=NOW, step_runs=50).step(STOP)
    before, told = users(store), documents(store, now=NOW)
    assert before != sorted(before)
    moved = 0
    for rows in JudgedPacking(store, 20).steps(UNTIL + DAY_S):
        moved += rows
        same(told, documents(store, now=NOW))
    assert (moved, users(store)) == (len(before), sorted(before))
    assert store.mark(JudgedPacking.mark) == UNTIL
    assert list(JudgedPacking(store, 20).steps(UNTIL + DAY_S)) == []
    store.close()


def test_what_is_not_judged_yet_is_waited_for() -> None:
    """A stretch in which runs are not judged is left for later, and nothing is noted."""
    store = filled()
    assert list(JudgedPacking(store).steps(UNTIL + DAY_S)) == []
    judging(store, now=UNTIL - DAY_S, step_runs=50).step(STOP)
    assert list(JudgedPacking(store).steps(UNTIL + DAY_S)) == []
    assert store.mark(JudgedPacking.mark) is None
    store.close()


def test_a_packed_run_is_judged_anew_once() -> None:
    """A late hour removes the packed row of its run, which is judged again: every run is there once."""
    store = filled()
    judging(store, now=NOW, step_runs=50).step(STOP)
    count = len(users(store))
    assert sum(JudgedPacking(store).steps(UNTIL + DAY_S)) == count
    upsert_hours(store, [row(run(1, 0, 2, user="user0"), 1, 0, random.Random(5))])
    assert len(users(store)) == count - 1
    told = documents(store, now=NOW)
    judging(store, now=NOW, step_runs=50).step(STOP)
    assert len(users(store)) == count
    same(told, documents(store, now=NOW))
    store.close()


def test_other_thresholds_are_packed_from_the_beginning() -> None:
    """What new thresholds judged stands in the order of users, too."""
    store = filled()
    judging(store, LEDGER, NOW, step_runs=50).step(STOP)
    assert sum(JudgedPacking(store).steps(UNTIL + DAY_S)) == len(users(store))
    judging(store, STRICT, NOW, step_runs=50).step(STOP)
    assert store.mark(JudgedPacking.mark) is None
    assert users(store) != sorted(users(store))
    told = documents(store, STRICT, now=NOW)
    assert sum(JudgedPacking(store).steps(UNTIL + DAY_S)) == len(users(store))
    assert users(store) == sorted(users(store))
    same(told, documents(store, STRICT, now=NOW))
    store.close()
