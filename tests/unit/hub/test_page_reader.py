"""Raw pages of imports are read again after an update, for columns that the version before did not take from them."""

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.unit.jobs.importers.rows import T0

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.importers.bulk_import import import_again, import_source
from gpuwaste.jobs.importers.history_store import HistoryStore
from gpuwaste.jobs.importers.page_details import PageReader
from gpuwaste.jobs.importers.sources.sacct import SacctFile
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock

COLUMNS = "JobIDRaw|Submit|Start|End|ElapsedRaw|State|NTasks|Priority|Flags|JobName"
JOBS = 60


def raw(job: int) -> str:
    at = T0 + job * 100
    own = f"{job}|{at}|{at + 10}|{at + 70}|60|COMPLETED||{job}|SchedBackfill|train"
    return f"{own}\n{job}.0|{at + 10}|{at + 10}|{at + 40}|30|COMPLETED|2|||work\n"


def old_store(tmp_path: Path, page_b: int = 1000) -> Path:
    """Return a store with pages, as the version before left it: without details and steps."""
    file = tmp_path / "sacct.txt"
    file.write_text(COLUMNS + "\n" + "".join(map(raw, range(1, JOBS + 1))))
    path = tmp_path / "state" / "hub.duckdb"
    store = HistoryStore.open(path, SystemClock())
    import_source(store, path, SacctFile(file, "gw", page_b=page_b))
    store._db.execute("DELETE FROM steps")
    store._db.execute("UPDATE jobs SET priority = NULL, flags = NULL, n_steps = NULL")
    store._db.execute("UPDATE pages SET version = 0")
    store.close()
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return such a store."""
    return old_store(tmp_path)


def told(store: HubStore) -> tuple[Any, ...]:
    with store.reader() as db:
        return db.execute(
            "SELECT count(priority), count(*) FILTER (flags = 'SchedBackfill'), sum(n_steps),"
            " (SELECT count(*) FROM steps), (SELECT count(*) FROM pages WHERE version = 0) FROM jobs"
        ).fetchall()[0]


def opened(path: Path) -> tuple[HubStore, PageReader]:
    store = HubStore.open(path, SystemClock())
    return store, PageReader(store, path, FakeClock())


def test_old_pages_give_their_new_columns(path: Path) -> None:
    """Every run has its details and steps afterwards, and no page is due again."""
    store, reader = opened(path)
    before = store.counts()
    assert reader.step(threading.Event()) == 0
    assert told(store) == (JOBS, JOBS, JOBS, JOBS, 0)
    assert store.counts() == before
    assert reader.worker.turn() is None
    store.close()


def test_a_hub_that_was_killed_goes_on_with_the_next_page(path: Path) -> None:
    """Each page is one transaction: what was taken is not read again, what was not is."""
    store, reader = opened(path)
    stop = threading.Event()
    stop.set()
    left = reader.step(stop)
    partly = told(store)
    assert 0 < partly[0] < JOBS
    assert partly[4] == left
    store.close()
    store, reader = opened(path)
    assert reader.step(threading.Event()) == 0
    assert told(store) == (JOBS, JOBS, JOBS, JOBS, 0)
    store.close()


def test_what_accounting_told_since_stays(path: Path) -> None:
    """An old page sets nothing but details, and none of a run that ended otherwise."""
    store, reader = opened(path)
    with store.writing() as db:
        db.execute("UPDATE jobs SET state = 'FAILED' WHERE job_id = 1")
        db.execute('UPDATE jobs SET "end" = "end" + 5 WHERE job_id = 2')
        db.execute("DELETE FROM jobs WHERE job_id = 3")
    assert reader.step(threading.Event()) == 0
    with store.reader() as db:
        rows = db.execute("SELECT job_id, state, priority FROM jobs WHERE job_id < 4 ORDER BY job_id").fetchall()
        steps = db.execute("SELECT job_id FROM steps WHERE job_id < 4 ORDER BY job_id").fetchall()
    assert rows == [(1, "FAILED", 1), (2, "COMPLETED", None)]
    assert steps == [(1,), (2,)]
    store.close()


def test_a_page_that_was_removed_is_due_no_more(path: Path) -> None:
    """An administrator may remove pages: the others are read, and nothing is tried again."""
    min(path.with_suffix(".pages").rglob("*.z")).unlink()
    store, reader = opened(path)
    assert reader.worker.turn() is None
    priority, *_, due = told(store)
    assert 0 < priority < JOBS
    assert due == 0
    store.close()


@pytest.mark.long
def test_a_damaged_page_costs_only_its_own_columns(path: Path) -> None:
    """The others are read; the hub says so and tries again."""
    min(path.with_suffix(".pages").rglob("*.z")).write_bytes(b"damaged")
    store, reader = opened(path)
    assert reader.worker.turn() == 3600
    priority, *_, due = told(store)
    assert 0 < priority < JOBS
    assert due == 1
    store.close()


def test_importing_again_takes_the_same(path: Path) -> None:
    """Without a hub, `gpuwaste history import --again` reads all pages at once."""
    store = HistoryStore.open(path, SystemClock())
    (result,) = import_again(store, path)
    assert (result.changed, store.ask("pages_due_count", {"version": 1})) == (JOBS, [{"pages": 0}])
    store.close()
    hub, _ = opened(path)
    assert told(hub) == (JOBS, JOBS, JOBS, JOBS, 0)
    hub.close()
