"""Days and runs in the order of users: the same rows and reports, wherever it breaks off, whatever comes in between."""

import contextlib
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.store.test_rollup import DAY, documents, new_store, roll, row, run, same, sites, sums

from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.run_store import runs_named, upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.rollup import DayPacking, JobPacking
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.table_parts import STRETCH_S

pytestmark = pytest.mark.long

AFTER = DAY - DAY % STRETCH_S + 2 * STRETCH_S


Rows = list[tuple[object, ...]]


def runs(store: HubStore) -> Rows:
    """Return all runs with all that is known of them, in the order of the file."""
    with store.reader() as db:
        return db.execute("SELECT run_start // 86400 // 32, * FROM jobs ORDER BY rowid").fetchall()


def users(store: HubStore) -> list[tuple[int, str]]:
    """Return stretch and user of each run in the order of the file."""
    with store.reader() as db:
        found = db.execute('SELECT run_start // 86400 // 32, "user" FROM jobs ORDER BY rowid').fetchall()
    return [(int(stretch), str(user)) for stretch, user in found]


def pack(store: HubStore, before: int = AFTER, step_rows: int = 20) -> None:
    """Pack both tables."""
    for packing in (DayPacking(store, step_rows), JobPacking(store, step_rows)):
        for _ in packing.steps(before):
            pass


def parts(store: HubStore) -> list[tuple[int, int]]:
    """Return stretch and part of each day in the order of the file."""
    with store.reader() as db:
        return [
            (int(day) // STRETCH_S, int(part))
            for day, part in db.execute("SELECT day_utc, part FROM days ORDER BY rowid").fetchall()
        ]


def filled(users: int = 6, days: int = 40) -> HubStore:
    """Return a store with one job a day of each user, all of it added up."""
    store, rng = new_store(), random.Random(3)
    jobs = [run(1 + u + d * users, d * 24 + u, 2, user=f"user{u}") for d in range(days) for u in range(users)]
    upsert_jobs(store, jobs)
    upsert_hours(store, [row(job, 0, i, rng) for job in jobs for i in range(2)])
    roll(store, DAY + (days + 1) * DAY_S, 1000)
    return store


@pytest.mark.timeout(600)  # each drawn site is judged several times
@settings(max_examples=examples(20, 2), deadline=None)
@given(sites(), st.integers(1, 9), st.integers(0, 4))
def test_reports_are_the_same(site: tuple[list[JobRecord], list[AllocationHour]], step_rows: int, steps: int) -> None:
    """Whatever ran, reports and sums are the same before, when broken off after some steps, and after packing."""
    jobs, rows = site
    store = new_store()
    upsert_jobs(store, jobs)
    upsert_hours(store, rows)
    roll(store)
    before, total, told = documents(store), sums(store), sorted(map(repr, runs(store)))
    for packing in (DayPacking(store, step_rows), JobPacking(store, step_rows)):
        for _ in zip(range(steps), packing.steps(AFTER), strict=False):
            same(before, documents(store))
    pack(store, step_rows=step_rows)
    same(before, documents(store))
    assert (sums(store), sorted(map(repr, runs(store)))) == (total, told)
    store.close()


def test_each_users_days_lie_together() -> None:
    """After packing the days of a stretch stand in the order of users; an open stretch is left, a packed one too."""
    store = filled()
    total = sums(store)
    until = DAY - DAY % STRETCH_S + STRETCH_S
    assert parts(store)[:20] != sorted(parts(store)[:20])
    assert sum(DayPacking(store, 20).steps(until + DAY_S)) == sum(
        stretch < until // STRETCH_S for stretch, _ in parts(store)
    )
    packed = [pair for pair in parts(store) if pair[0] < until // STRETCH_S]
    assert packed == sorted(packed)
    assert (sums(store), store.mark(DayPacking.mark)) == (total, until)
    assert list(DayPacking(store, 20).steps(until + DAY_S)) == []
    store.close()


def test_each_users_runs_lie_together() -> None:
    """After packing the ended runs of a stretch stand in the order of users; running ones and an open stretch stay."""
    store = filled()
    until = DAY - DAY % STRETCH_S + STRETCH_S
    running = run(10**6, 3, 1, user="user2", end=None, state="RUNNING")
    upsert_jobs(store, [running])
    before = users(store)
    ended = [pair for pair in before if pair[0] < until // STRETCH_S][:-1]
    assert ended != sorted(ended)
    assert sum(JobPacking(store, 20).steps(until + DAY_S)) == len(ended)
    after = users(store)
    assert after[-len(ended) :] == sorted(ended)
    assert sorted(after) == sorted(before)
    assert store.mark(JobPacking.mark) == until
    assert list(JobPacking(store, 20).steps(until + DAY_S)) == []
    store.close()


def test_a_packed_run_may_be_told_anew() -> None:
    """Accounting names another state of a packed run: it is one run still, the new one."""
    store = filled(users=3, days=5)
    pack(store)
    count, told = len(runs(store)), run(1, 0, 2, user="user0", state="FAILED")
    upsert_jobs(store, [told])
    assert len(runs(store)) == count
    assert [job.state for job in runs_named(store, "1")] == ["FAILED"]
    store.close()


def test_a_user_who_has_more_than_a_step_is_left_where_he_is() -> None:
    """A part with more rows than a step may hold is passed over, the others are packed."""
    store = filled(users=1, days=5)
    assert sum(DayPacking(store, 2).steps(AFTER)) == 0
    assert sum(JobPacking(store, 2).steps(AFTER)) == 0
    store.close()


def test_days_of_another_user_meanwhile_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounting names another user between reading and exchange: nothing is moved, and his report has the days."""
    store = filled(users=2, days=5)
    before = sums(store)
    exchanging = HubStore.exchanging
    jobs = [run(1 + d * 2, d * 24, 2, user="renamed") for d in range(5)]

    @contextlib.contextmanager
    def late(self: HubStore, db: Database) -> Iterator[None]:
        monkeypatch.setattr(HubStore, "exchanging", exchanging)
        upsert_jobs(self, jobs)
        with exchanging(self, db):
            yield

    monkeypatch.setattr(HubStore, "exchanging", late)
    assert sum(DayPacking(store, 100).steps(AFTER)) == 0
    assert sums(store) == before
    assert documents(store)["user:user0"]["totals"]["devices"] == 0
    with store.reader() as db:
        found = db.execute("SELECT count(DISTINCT part) FROM days").fetchall()
    assert found == [(2,)]
    store.close()


def test_a_store_without_days_has_nothing_to_pack() -> None:
    """Nothing is done and nothing noted where no hour was added up, or no run is known."""
    store = new_store()
    for packing in (DayPacking(store), JobPacking(store)):
        assert list(packing.steps(AFTER)) == []
        assert store.mark(packing.mark) is None
    store.close()
