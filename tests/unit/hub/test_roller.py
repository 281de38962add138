"""The thread that adds up old hours: what is due by the hub's clock and days, nothing else, and no error ends it."""

import random
import threading

from tests.unit.store.test_rollup import BEFORE, DAY, new_store, row, run

from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.rollup import FIRST_S, Roller
from gpuwaste.testing.clocks import FakeClock


def test_days_decide_what_is_due() -> None:
    """With 0 days nothing is added up; with 30 what ended 30 days ago, and later the rest as time goes by."""
    store, rng, stop = new_store(), random.Random(1), threading.Event()
    old, new = run(1, 0, 5), run(2, 24 * 10, 5)
    upsert_jobs(store, [old, new])
    upsert_hours(store, [row(job, 0, i, rng) for job in (old, new) for i in range(5)])
    clock = FakeClock(DAY + 35 * DAY_S)
    roller = Roller(store, clock, 0)
    assert roller.step(stop) == 0
    roller.days = 30
    assert (roller.step(stop), store.counts()["hours"]) == (5, 5)
    assert roller.step(stop) == 0
    clock.advance(10 * DAY_S)
    assert (roller.step(stop), store.counts()["hours"], store.counts()["days"]) == (5, 0, 2)
    store.close()


def test_a_store_that_fails_does_not_end_the_thread() -> None:
    """An error of the store is logged, and the next step does the work; a stop ends the thread at once."""
    store, stop = new_store(), threading.Event()
    roller = Roller(store, FakeClock(BEFORE + 40 * DAY_S), 30)
    with store.writing() as db:
        db.execute("ALTER TABLE days RENAME TO away")
    job = run(1, 0, 1)
    upsert_jobs(store, [job])
    upsert_hours(store, [row(job, 0, 0, random.Random(1))])
    assert roller.step(stop) == 0
    with store.writing() as db:
        db.execute("ALTER TABLE away RENAME TO days")
    assert roller.step(stop) == 1
    roller.worker.start(FIRST_S)
    roller.worker.stop()
    assert not roller.worker.alive
    store.close()
