"""`gpuwaste hub move`: from a file to a real lake and back, whole or not at all, whatever is killed meanwhile."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bench.soak_fill import fill_hours
from tests.integration.hub.rig import Rig
from tests.integration.store.drawn_site import BEGIN, END, DrawnSite, hub_of, tell
from tests.integration.store.test_lake import DOCUMENTS, EDGES, OPER, rows

from gpuwaste.cli.main import main
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import StoreError
from gpuwaste.hub.store_mover import MOVING, StoreMover
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.lake_store import LakeReader, LakeStore
from gpuwaste.store.hub.store_file import UNFINISHED, note_moved
from gpuwaste.store.lake_database import LakeDatabase, LakeLocation
from gpuwaste.testing import postgres_server
from gpuwaste.testing.clocks import StandingClock
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.postgres_server import PostgresServer

pytestmark = [pytest.mark.long, pytest.mark.sockets]
NEXT_JOB = 977


@dataclass(frozen=True)
class Place:
    """A hub's state_dir, its lake, and configurations that name one of the two as its store."""

    directory: Path
    catalog: str

    @property
    def state(self) -> Path:
        return self.directory / "state"

    @property
    def store(self) -> Path:
        return self.state / "hub.duckdb"

    @property
    def data(self) -> Path:
        return self.directory / "the lake"

    @property
    def location(self) -> LakeLocation:
        return LakeLocation(self.catalog, self.data)

    def keys(self, store: str) -> dict[str, Any]:
        return {"store": store, "lake_catalog": self.catalog, "lake_data": str(self.data)}

    def words(self, store: str, *words: str) -> list[str]:
        """Return the command's words, for a site whose hub has this store."""
        config = self.directory / f"{store}.toml"
        config.write_text(to_toml({"hub": {"state_dir": str(self.state), **self.keys(store)}}), encoding="utf-8")
        return ["hub", "move", *words, "--config", str(config)]

    def move(self, to: str, *words: str) -> int:
        """Move the store in this process; returns the exit code."""
        return main(self.words("file" if to == "lake" else "lake", "--to", to, *words))

    def start_move(self, to: str) -> "subprocess.Popen[str]":
        """Move it in another process."""
        words = self.words("file" if to == "lake" else "lake", "--to", to)
        return subprocess.Popen(
            [sys.executable, "-m", "gpuwaste.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def file_counts(self) -> Mapping[str, int]:
        with closing(HubStore.open(self.store, SystemClock())) as store:
            return store.counts()

    def lake_counts(self) -> Mapping[str, int]:
        with closing(LakeStore.open_lake(self.location, SystemClock(), self.directory)) as store:
            return store.counts()


def place_in(directory: Path, server: PostgresServer, store: Path | None = None) -> Place:
    """Make a place, with a copy of a store."""
    place = Place(directory, server.new_database())
    place.state.mkdir(parents=True)
    if store is not None:
        shutil.copy(store, place.store)
    return place


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fill a store with some ten thousand hours of forty days."""
    store = tmp_path_factory.mktemp("filled") / "hub.duckdb"
    fill_hours(store, 2, 24 * 40)
    return store


@contextmanager
def hub_at(place: Place, store: str) -> Iterator[Rig]:
    """Run the site's hub with this store, at the time at which the drawn site ends."""
    with hub_of(place.state, StandingClock(END), **place.keys(store)) as hub:
        yield hub


def answers(hub: Rig) -> dict[str, Any]:
    """Return what an operator is told."""
    return {target: hub.get(OPER, target).json for target in (*DOCUMENTS, f"/v1/views/waste?{EDGES}")}


def same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Compare name by name, so that a failure is of readable length."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == value, name


def test_a_store_is_moved_to_a_lake_and_back(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A drawn site: the lake answers every question as the file did, so does the new file, and events go on."""
    place, clock = place_in(tmp_path, postgres), StandingClock(BEGIN)
    with hub_of(place.state, clock) as hub:
        tell(hub, DrawnSite(2), clock)
    with hub_at(place, "file") as hub:
        before, first_rows = answers(hub), rows(hub)
    assert place.move("lake", "--json") == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["moved"], done["copied"]) == (True, done["rows"])
    assert done["rows"] >= sum(len(found) - 1 for found in first_rows.values())
    with pytest.raises(StoreError, match=r'was moved to a lake: set \[hub\] store = "lake"'), hub_at(place, "file"):
        pass
    with hub_at(place, "lake") as hub:
        same(answers(hub), before)
        same(rows(hub), first_rows)
        hub.store.set_mark("on the lake", 1)
    assert place.move("file") == 1, "the file that was moved is there"
    assert "hub.duckdb: exists already: --force replaces it" in capsys.readouterr().err
    assert place.move("file", "--force") == 0
    assert 'set store = "file" in section [hub] of ' in capsys.readouterr().out
    moved = r'was moved to a file: set \[hub\] store = "file"'
    with pytest.raises(StoreError, match=moved), hub_at(place, "lake"):
        pass
    with pytest.raises(StoreError, match=moved):  # nor does a hub that stands by read it
        LakeReader.open_lake(place.location, clock, tmp_path / "reader")
    with hub_at(place, "file") as hub:
        assert hub.store.mark("on the lake") == 1
        found = rows(hub)
        found["marks"].remove(("on the lake", 1))
        same(answers(hub), before)
        same(found, first_rows)
        last = history_events(hub.store, 0, 10**6)[-1].seq
        upsert_jobs(hub.store, [DrawnSite(3).runs[0]])
        assert history_events(hub.store, last, 9), "a new event has a number of its own"
    assert sorted(path.name for path in place.state.glob("hub.duckdb*")) == ["hub.duckdb", "hub.duckdb.before-move"]
    assert main(place.words("lake", "--reopen")) == 0
    assert place.lake_counts()["jobs"] == len(first_rows["jobs"]) - 1


@pytest.mark.parametrize("to", ["lake", "file"])
def test_a_kill_in_the_middle_leaves_the_old_store(
    postgres: PostgresServer, tmp_path: Path, filled: Path, to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kill -9 while rows are copied: the old store has all, no hub takes the new one, the next move ends the work."""
    place = place_in(tmp_path, postgres, filled)
    whole = place.file_counts()
    if to == "file":
        assert place.move("lake") == 0
        place.store.unlink()
    process = place.start_move(to)
    half = place.data if to == "lake" else place.state
    pattern = "main/hours/*.parquet" if to == "lake" else f"{MOVING}*"
    enough = 3 if to == "lake" else 2
    wait_until(lambda: len(list(half.glob(pattern))) >= enough or process.poll() is not None, 60, "rows", poll_s=0.002)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.communicate()
    if to == "lake":
        assert place.file_counts() == whole
        with pytest.raises(StoreError, match="a move into this lake is not finished: run `gpuwaste hub move"):
            place.lake_counts()
    else:
        assert not place.store.exists()
        assert place.lake_counts() == whole
    capsys.readouterr()
    assert place.move(to) == 0
    assert (place.lake_counts() if to == "lake" else place.file_counts()) == whole


def test_what_was_copied_is_not_copied_again(postgres: PostgresServer, tmp_path: Path, filled: Path) -> None:
    """PostgreSQL is gone in the middle: one line. With it back, the same command copies only what is missing."""
    if reason := postgres_server.missing():
        pytest.skip(reason)
    with postgres_server.postgres_server() as server:
        place = place_in(tmp_path, server, filled)
        whole = place.file_counts()
        mover = StoreMover(place.state, place.location, lambda _, done, total: gone(server, done > total // 2))
        with pytest.raises(StoreError) as caught:
            mover.to_lake()
        assert "\n" not in str(caught.value)
        assert str(caught.value).endswith("the move stopped, the old store is unchanged: run it again to continue")
        assert place.file_counts() == whole
        server.start()
        done = StoreMover(place.state, place.location, lambda *_: None).to_lake()
        assert 0 < done.copied < done.rows * 2 // 3
        assert place.lake_counts() == whole


def gone(server: PostgresServer, now: bool) -> None:
    """Kill the server, if it is time."""
    if now:
        server.kill()


def test_a_full_disk_is_one_line(
    postgres: PostgresServer, tmp_path: Path, filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No room for the rows, on the way to the lake and back: one line, and the old store is whole."""
    place = place_in(tmp_path, postgres, filled)
    whole = place.file_counts()
    place.data.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place.data], check=False).returncode:
        pytest.skip("no tmpfs may be mounted here")
    try:
        assert place.move("lake") == 1
        said = capsys.readouterr().err
        assert (said.count("\n"), "the old store is unchanged" in said) == (1, True), said
        assert place.file_counts() == whole
        subprocess.run(["mount", "-o", "remount,size=64m", place.data], check=True)
        assert place.move("lake") == 0
        place.state.rename(tmp_path / "first state")
        place.state.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", place.state], check=True)
        assert place.move("file") == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert not place.store.exists()
        assert place.lake_counts() == whole
    finally:
        subprocess.run(["umount", "-q", place.state], check=False)
        subprocess.run(["umount", place.data], check=True)


def test_only_an_empty_target_is_filled(
    postgres: PostgresServer, tmp_path: Path, filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lake with a hub's store, a directory with a file, a file that is there, the store's own kind: one line each."""
    place = place_in(tmp_path / "a", postgres, filled)
    with closing(LakeStore.open_lake(place.location, SystemClock(), tmp_path)) as store:
        store.set_mark("precious", 1)
    other = place_in(tmp_path / "b", postgres, filled)
    other.data.mkdir()
    (other.data / "precious").write_text("x", encoding="utf-8")
    empty = place_in(tmp_path / "c", postgres)
    for code, words, said in (
        (1, place.words("file", "--to", "lake"), "is not empty: name an empty database and an empty directory"),
        (1, other.words("file", "--to", "lake"), "is not empty: name an empty database and an empty directory"),
        (1, place.words("lake", "--to", "file"), "exists already: --force replaces it"),
        (2, place.words("lake", "--to", "lake"), '[hub] store is "lake" already'),
        (2, place.words("file", "--to", "lake", "--force"), "a lake must be empty"),
        (2, empty.words("file", "--to", "lake"), "there is no store to move"),
        (1, empty.words("lake", "--to", "file"), "the database has no store of a hub"),
    ):
        assert main(words) == code, words
        error = capsys.readouterr().err
        assert (error.count("\n"), said in error) == (1, True), error
    with closing(LakeStore.open_lake(place.location, SystemClock(), tmp_path)) as store:
        assert store.mark("precious") == 1


def test_a_kill_at_the_very_end_is_mended_by_the_same_command(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed with the note on the old store, before the new one is open: no hub has either, the next move ends it."""
    place = place_in(tmp_path, postgres)
    with closing(HubStore.open(place.store, SystemClock())) as store:
        upsert_jobs(store, [DrawnSite(3).runs[0]])
    assert place.move("lake") == 0
    with closing(LakeDatabase.open_lake(place.location, "hub")) as lake, lake.writing():
        lake.note_move("filling")
    for kind in ("file", "lake"):
        with pytest.raises(StoreError, match="run `gpuwaste hub move --to lake` again"), hub_at(place, kind):
            pass
    assert place.move("lake") == 0
    assert place.lake_counts()["jobs"] == 1
    assert place.move("file", "--force") == 0
    place.store.rename(place.state / MOVING)
    note_moved(place.store, UNFINISHED)
    with pytest.raises(StoreError, match="run `gpuwaste hub move --to file` again"), hub_at(place, "file"):
        pass
    with StoreMover(place.state, place.location, lambda *_: None).only_one():
        assert place.move("file", "--force") == 1
        assert "another `gpuwaste hub move` is running" in capsys.readouterr().err
    assert place.move("file") == 0
    assert place.file_counts()["jobs"] == 1
