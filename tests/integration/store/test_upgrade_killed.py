"""A store of 0.1 that is opened by today's code and killed with -9 before its log is folded in: nothing is lost."""

import lzma
import signal
import subprocess
import sys
from pathlib import Path

from gpuwaste.store.database import Database
from gpuwaste.testing.patience import patient

FIXTURE = Path(__file__).parents[2] / "fixtures/upgrade-0.1/store.duckdb.xz"
TABLES = ("hours", "jobs", "verdicts", "pages", "events")
MIGRATE = """
import os, signal, sys
from pathlib import Path
from gpuwaste.store.database import Database
db = Database.open(Path(sys.argv[1]), "hub")
db.execute("UPDATE hours SET seq = seq + 1")
db.execute("UPDATE jobs SET name = name || '!'")
os.kill(os.getpid(), signal.SIGKILL)
"""


def counts(db: Database) -> dict[str, int]:
    """Return how many rows each table has."""
    found = {}
    for table in TABLES:
        (row,) = db.execute(f"SELECT count(*) FROM {table}").fetchall()  # noqa: S608 names of this file
        found[table] = row[0]
    return found


def test_a_migrated_store_that_is_killed_opens_again(tmp_path: Path) -> None:
    """Each table has the rows that it had, and what was written after the migration is there."""
    path, plain = tmp_path / "hub.duckdb", tmp_path / "plain.duckdb"
    for copy in (path, plain):
        copy.write_bytes(lzma.decompress(FIXTURE.read_bytes()))
    done = subprocess.run(
        [sys.executable, "-c", MIGRATE, str(path)], check=False, capture_output=True, timeout=patient(120)
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    before, after = Database.open(plain, "hub"), Database.open(path, "hub")
    try:
        assert counts(after) == counts(before)
        assert counts(after)["hours"]
        assert (
            after.execute("SELECT sum(seq) FROM hours").fetchall()
            != before.execute("SELECT sum(seq) FROM hours").fetchall()
        )
        assert after.execute("SELECT count(*) FROM jobs WHERE name NOT LIKE '%!'").fetchall() == [(0,)]
    finally:
        before.close()
        after.close()
