"""`gpuwaste hub erase` on a real file, and on a real lake: what is in the files afterwards, and what it refuses."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.store.drawn_site import END, DrawnSite, hub_of
from tests.integration.store.drawn_site import tell as tell_of_site
from tests.integration.store.test_lake import DOCUMENTS, EDGES, OPER
from tests.unit.store.stored_people import fill, named

from gpuwaste.cli.main import main
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.importers.page_files import PageFiles
from gpuwaste.ledger.appeals.appeal_service import Appeals
from gpuwaste.ledger.appeals.appeal_types import AppealOrder
from gpuwaste.ledger.judging import Judging
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.inbox import Arrival, InboxWriter
from gpuwaste.store.hub.lake_store import LakeStore
from gpuwaste.store.lake_database import LakeLocation
from gpuwaste.testing.clocks import StandingClock
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.postgres_server import PostgresServer

pytestmark = [pytest.mark.long, pytest.mark.sockets]
NAME = "alice-of-the-lab"
LAST_EVENT = 5


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a hub's state_dir whose file names two users in every column with text."""
    state = tmp_path / "state"
    state.mkdir()
    with closing(HubStore.open(state / "hub.duckdb", SystemClock())) as store:
        fill_store(store)
    return state


def fill_store(store: HubStore) -> None:
    """Fill every column with text for two users; the last event names the one who is erased."""
    with store.writing() as db:
        for number, user in enumerate((NAME, "dave"), 1):
            fill(db, user, number)
    for number in range(LAST_EVENT):
        tell(store, f"e{number}")


def tell(store: HubStore, name: str) -> int:
    """Tell an event that names a user; returns the place of the last event of the stream."""
    events = EventStore(store, SystemClock())
    assert events.tell([StoredEvent(name, "waste.opened", "x", 1, json.dumps({"user": NAME}))]) == 1
    return events.last(0)


def erase(state: Path, *words: str, **keys: Any) -> int:
    """Run the command in this process; returns its exit code."""
    config = state.parent / "gpuwaste.toml"
    config.write_text(to_toml({"hub": {"state_dir": str(state), **keys}}), encoding="utf-8")
    return main(["hub", "erase", *words, "--config", str(config)])


def test_no_byte_of_the_files_has_the_name(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not even in freed parts of the file, nor in raw pages; dave's rows, figures and pages are there."""
    pages = PageFiles(state / "hub.duckdb")
    pages.prepare()
    of_dave = pages.keep(b"7|dave|train").digest
    pages.keep(f"8|{NAME}|train".encode())
    assert NAME.encode() in (state / "hub.duckdb").read_bytes()
    assert erase(state, NAME, "--json") == 0
    done = json.loads(capsys.readouterr().out)
    assert {"jobs", "judged", "day_sums", "appeals", "keeps", "rule_firings", "quarantine"} <= {
        t["table"] for t in done["tables"]
    }
    assert done["pages"] == 1
    assert pages.has(of_dave)
    assert [path for path in state.rglob("*") if path.is_file() and NAME.encode() in path.read_bytes()] == []
    with closing(HubStore.open(state / "hub.duckdb", SystemClock())) as store, store.reader() as db:
        assert named(db, "dave")["jobs"] == 1
        assert (store.counts()["jobs"], store.counts()["verdicts"]) == (2, 2)
        assert tell(store, "new") == LAST_EVENT + 1


def test_a_hub_serves_the_same_sums_without_the_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A hub that has judged a site's runs, with an objection by alice: after the erasure every figure is as before."""
    state, clock = tmp_path / "state", StandingClock(END)
    targets = [*DOCUMENTS, f"/v1/views/waste?{EDGES}", "/v1/report?account=proj1&days=21"]
    with hub_of(state, clock) as hub:
        tell_of_site(hub, DrawnSite(1), clock)
        run = next(job for job in DrawnSite(1).runs if job.user == "alice" and job.job_id % 10)
        order = AppealOrder(job=str(run.job_id), reason="alice disagrees")
        hub.hub.get(Appeals).appeal(Scope("alice"), order)
        before = [hub.get(OPER, target).json for target in targets]
    assert "alice" in json.dumps(before)
    assert erase(state, "alice") == 0
    assert "appeals: 1 rows of alice rewritten" in capsys.readouterr().out
    with hub_of(state, clock) as hub:
        after = [hub.get(OPER, target).json for target in targets]
        assert "alice" not in json.dumps(after)
        hub.hub.get(Judging).step(threading.Event())
        assert "alice" not in json.dumps([hub.get(OPER, target).json for target in targets])
    for old, new in zip(before, after, strict=True):
        for name in ("gpu_s", "wasted_s", "idle_s", "job_count", "jobs_total", "coverage"):
            assert new.get(name) == old.get(name)
    assert '"user": "erased"' in json.dumps(after)


def test_a_dry_run_counts_the_same_and_changes_nothing(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--dry-run gives the figures of what follows; a second erasure has nothing to do."""
    with closing(HubStore.open(state / "hub.duckdb", SystemClock())) as store, store.reader() as db:
        before = named(db, NAME)
    counted = []
    for words in (("--dry-run",), (), ()):
        assert erase(state, NAME, "--json", *words) == 0
        counted.append(json.loads(capsys.readouterr().out)["tables"])
        with closing(HubStore.open(state / "hub.duckdb", SystemClock())) as store, store.reader() as db:
            assert named(db, NAME) == (before if words else {})
    assert counted[0] == counted[1] != []
    assert counted[2] == []


def test_what_it_says(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables, what comes back with accounting, copies in the state directory, and where else the user is known."""
    (state / "hub.duckdb.before-restore").write_bytes(b"old")
    with closing(HubStore.open(state / "hub.duckdb", SystemClock())) as store, store.writing() as db:
        db.execute('UPDATE jobs SET "end" = NULL WHERE "user" = ?', [NAME])
    assert erase(state, NAME) == 0
    told = capsys.readouterr().out
    for words in (
        f"erased user {NAME}: rows by table\n", "  appeals: 1 rows of", "the store's file was rewritten",
        f"1 of {NAME}'s runs have not ended", "hub.duckdb.before-restore", Config().advisor.state_dir,
        "backups of the store",
    ):  # fmt: skip
        assert words in told
    assert erase(state, NAME) == 0
    assert f"no row of the store names user {NAME}\n" in capsys.readouterr().out


@pytest.mark.parametrize("user", ["", "erased", "a\nb"])
def test_what_is_no_user_is_refused(state: Path, user: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and nothing is changed."""
    before = (state / "hub.duckdb").read_bytes()
    assert erase(state, user) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert (state / "hub.duckdb").read_bytes() == before


def test_a_store_that_is_used_is_left_alone(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While another process, such as a hub, has the file open, the command says so; without a store too."""
    holds = (
        "import sys; from pathlib import Path; from gpuwaste.store.database import Database\n"
        "db = Database.open(Path(sys.argv[1]), 'hub'); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holds, str(state / "hub.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        assert erase(state, NAME) == 1
        process.communicate("")
    assert "hub.duckdb: used by another process, probably a running hub: stop it first" in capsys.readouterr().err
    (state / "hub.duckdb").unlink()
    assert erase(state, NAME) == 2
    assert "does not exist" in capsys.readouterr().err


def test_without_room_the_rows_are_erased_and_the_file_is_said_to_be_old(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line says what is done, what is not and how much space is missing; a second call ends it."""
    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 0}))
        assert erase(state, NAME) == 1
    assert "the rows are erased, but freed parts of" in capsys.readouterr().err
    assert erase(state, NAME) == 0
    assert NAME.encode() not in (state / "hub.duckdb").read_bytes()


@contextmanager
def lake_of(postgres: PostgresServer, state: Path) -> Iterator[tuple[LakeLocation, dict[str, Any]]]:
    """Lend a filled lake, with the keys of its configuration."""
    catalog, data = postgres.new_database(), state.parent / "lake"
    data.mkdir()
    location = LakeLocation(catalog, data)
    with closing(LakeStore.open_lake(location, SystemClock(), state)) as store:
        fill_store(store)
    yield location, {"store": "lake", "lake_catalog": catalog, "lake_data": str(data)}


def dumped(postgres: PostgresServer, location: LakeLocation) -> str:
    """Return all rows of the catalog's database: what a backup of it has."""
    name = location.catalog.rpartition("dbname=")[2]
    words = ["pg_dump", "--inserts", "-h", str(postgres.directory), "-U", "gpuwaste", name]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def files_with(name: str, data: Path) -> list[str]:
    """Return the Parquet files that have a name in a value, or in their statistics."""
    found = []
    with connect() as db:
        for path in sorted(data.rglob("*.parquet")):
            rows = db.execute("FROM read_parquet(?)", [str(path)]).fetchall()
            if name in repr(rows) or name.encode() in path.read_bytes():
                found.append(path.name)
    return found


def test_a_lake_forgets_its_past_too(postgres: PostgresServer, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No row, no file, no old snapshot and no statistic of the catalog has the name; a dry run changes nothing."""
    with lake_of(postgres, state) as (location, keys):
        data = state.parent / "lake"
        assert files_with(NAME, data)
        assert NAME in dumped(postgres, location)
        assert erase(state, NAME, "--dry-run", "--json", **keys) == 0
        counted = json.loads(capsys.readouterr().out)["tables"]
        with closing(LakeStore.open_lake(location, SystemClock(), state)) as store, store.reader() as db:
            assert len(named(db, NAME)) > 10
        assert erase(state, NAME, "--json", **keys) == 0
        assert json.loads(capsys.readouterr().out)["tables"] == counted
        assert files_with(NAME, data) == []
        assert NAME not in dumped(postgres, location)
        with closing(LakeStore.open_lake(location, SystemClock(), state)) as store, store.reader() as db:
            assert named(db, NAME) == {}
            assert named(db, "dave")["jobs"] == 1
            assert tell(store, "new") > LAST_EVENT
            assert [e.kind for e in EventStore(store, SystemClock()).page(LAST_EVENT, 9).events] == ["waste.opened"]


def test_batches_that_are_not_merged_are_waited_for(
    postgres: PostgresServer, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a hub that stands by has taken may name the user: the command refuses, and says what to do."""
    with lake_of(postgres, state) as (location, keys):
        with closing(InboxWriter(location)) as inbox:
            inbox.append([Arrival("verdicts", 1, "ctl", NAME.encode())])
        assert erase(state, NAME, **keys) == 1
        assert "1 batches in the lake's inbox are not merged yet" in capsys.readouterr().err
        with closing(LakeStore.open_lake(location, SystemClock(), state)) as store, store.writing() as db:
            db.execute("UPDATE folded SET snapshot = (SELECT max(snapshot_id) FROM ducklake_snapshots('lake'))")
        assert erase(state, NAME, **keys) == 0
        with closing(LakeStore.open_lake(location, SystemClock(), state)) as store, store.reader() as db:
            assert db.execute("SELECT count(*) FROM arrived").fetchall() == [(0,)]
            assert not db.has_table("arrived_closed")
