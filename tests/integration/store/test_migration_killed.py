"""A store that is migrated and killed with -9 before its log is folded in: nothing is lost."""

import random
import signal
import subprocess
import sys
from pathlib import Path

from tests.unit.store.test_rollup import row, run

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.patience import patient

MIGRATE = """
import os, signal, sys
from pathlib import Path
from gpuwaste.store import database
steps = database._steps
added = "ALTER TABLE {table} ADD COLUMN added BIGINT DEFAULT 7"
database._steps = lambda schema: (*steps(schema), ";".join(added.format(table=table) for table in ("hours", "jobs")))
db = database.Database.open(Path(sys.argv[1]), "hub")
db.execute("UPDATE hours SET seq = seq + 1000, added = 8")
db.execute("UPDATE jobs SET name = name || '!'")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_migrated_store_that_is_killed_opens_again(tmp_path: Path) -> None:
    """Each table has the rows that it had, with what was written after the migration."""
    path = tmp_path / "hub.duckdb"
    store = HubStore.open(path, SystemClock())
    job = run(1, 0, 30)
    upsert_jobs(store, [job])
    upsert_hours(store, [row(job, 0, hour, random.Random(hour)) for hour in range(20)])
    with store.reader() as db:
        hours = db.execute("SELECT hour_utc, seq + 1000, 8 FROM hours ORDER BY ALL").fetchall()
    assert len(hours) == 20
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", MIGRATE, str(path)], check=False, capture_output=True, timeout=patient(120)
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert path.with_name("hub.duckdb.wal").stat().st_size, "the log was folded in: the test shows nothing"
    with connect(path) as left:
        assert left.execute("SELECT hour_utc, seq, added FROM hours ORDER BY ALL").fetchall() == hours
        assert left.execute("SELECT name, added FROM jobs").fetchall() == [(f"{job.name}!", 7)]
        assert left.execute("SELECT max(version) FROM schema_version").fetchall() == [(2,)]
