"""The bulk import into a lake: real DuckLake on a real PostgreSQL gets the rows that a file gets."""

import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from tests.integration.cli.test_train import swf
from tests.unit.jobs.importers.rows import T0, log, row, step

from gpuwaste.jobs.importers.bulk_import import import_again, import_source
from gpuwaste.jobs.importers.history_store import HistoryStore
from gpuwaste.jobs.importers.import_result import ImportResult
from gpuwaste.jobs.importers.sources.sacct import SacctFile
from gpuwaste.jobs.importers.sources.swf import SwfFile
from gpuwaste.store.database import Database, schema_tables
from gpuwaste.store.lake_database import LakeDatabase, LakeLocation
from gpuwaste.testing.clocks import StandingClock
from gpuwaste.testing.lone_hub import LoneHub
from gpuwaste.testing.patience import patient
from gpuwaste.testing.postgres_server import PostgresServer

pytestmark = [pytest.mark.long, pytest.mark.sockets, pytest.mark.timeout(600)]  # a hub, and commands in turn
BAD: Final = row(901, Start="yesterday") + b"12|cut\n"
LATE: Final = step(100, "9M") + row(102) + row(50, State="FAILED")
JOBS: Final = 60  # of the log in which a row is a run; some rows come twice


@pytest.fixture
def location(postgres: PostgresServer, tmp_path: Path) -> LakeLocation:
    (tmp_path / "lake").mkdir()
    return LakeLocation(postgres.new_database(), tmp_path / "lake")


def contents(db: Database) -> dict[str, list[Any]]:
    """Return the rows of each table of the hub, and close the store."""
    found = {}
    with closing(db):
        for table, columns in schema_tables("hub").items():
            listed = ", ".join(f'"{column.name}"' for column in columns)
            found[table] = db.execute(f"SELECT {listed} FROM {table} ORDER BY ALL").fetchall()  # noqa: S608 ours
    del found["schema_version"]
    return found


def imported(store: HistoryStore, path: Path, directory: Path) -> list[ImportResult]:
    """Import a log that grows, a log whose rows are runs, and all kept pages again."""
    sacct, other = log(directory / "a.txt", range(1, 61), BAD), swf(directory / "log.swf", JOBS)
    results = []
    for late in (b"", LATE):
        with sacct.open("ab") as out:
            out.write(late)
        results.append(import_source(store, path, SacctFile(sacct, "gw", page_b=8000), processes=2))
    results.append(import_source(store, path, SwfFile(other, "old")))
    results += import_again(store, path)
    for result in results:
        result.seconds = 0.0
    return results


def test_a_lake_gets_what_a_file_gets(location: LakeLocation, tmp_path: Path) -> None:
    """Every row of every table, and what each import says of itself."""
    clock, logs, path, in_lake = (
        StandingClock(T0 + 10**8),
        tmp_path / "logs",
        tmp_path / "hub.duckdb",
        tmp_path / "pages",
    )
    logs.mkdir()
    with closing(HistoryStore.open(path, clock)) as file:
        expected = imported(file, path, logs)
    with closing(HistoryStore.open_lake(location, in_lake, clock, tmp_path / "scratch")) as lake:
        assert imported(lake, in_lake, logs) == expected
    there, here = contents(Database.open(path, "hub")), contents(LakeDatabase.open_reader(location, "hub"))
    assert len(there["jobs"]) > JOBS + 60
    assert len(there["quarantine"]) == 3
    for table, rows in there.items():
        assert here[table] == rows, table


def test_an_import_needs_the_lake_without_a_hub_and_the_status_does_not(location: LakeLocation, tmp_path: Path) -> None:
    """While a hub serves: one line that names it, and nothing stored. Without one the runs are there, once."""
    keys = {"store": "lake", "lake_catalog": location.catalog, "lake_data": str(location.data)}
    hub = LoneHub(tmp_path, hub=keys)
    file = log(tmp_path / "a.txt", range(1, 11))
    hub.start()
    config = ["--config", str(tmp_path / "gpuwaste.toml")]
    command = ["import", "--sacct", str(file), "--clusters", "gw", *config]
    refused = history(*command)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert len(refused.stderr.splitlines()) == 1
    assert "a hub runs on it: " in refused.stderr
    assert "stop all hubs of the lake meanwhile, or write to a file with --into" in refused.stderr
    empty = history("status", *config).stdout
    assert re.search(rf"^  Store: +{re.escape(str(location.data))}$", empty, re.MULTILINE)
    assert empty.endswith("\n  no runs\n")
    hub.stop()
    assert "10 runs" in history(*command).stdout
    hub.start()
    assert hub.metric('gpuwaste_hub_store_rows{table="jobs"}') == 10
    assert "10" in history("status", *config).stdout
    hub.stop()
    assert "nothing new" in history(*command).stdout


def history(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `gpuwaste history`."""
    command = [sys.executable, "-m", "gpuwaste.cli", "history", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=patient(120))
