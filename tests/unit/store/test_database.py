"""The store opens, has its schema and refuses what it cannot read, without touching it."""

import re
import sys
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest

from gpuwaste.core.errors import StoreError
from gpuwaste.store import database as database_module
from gpuwaste.store.database import MEMORY, Database, schema_number
from gpuwaste.store.duckdb_connection import connect

_STEPS = database_module._steps


def step(statement: str) -> Callable[[str], tuple[str, ...]]:
    """Return the schema with a migration more."""
    return lambda schema: (*_STEPS(schema), statement)


def test_a_new_store_has_the_schema(tmp_path: Path) -> None:
    """Opening an empty path makes every table of every subject's file, and opening it again makes none."""
    path = tmp_path / "hub.duckdb"
    store = resources.files("gpuwaste.store")
    told = [(store / name).read_text(encoding="utf-8") for name in database_module.SCHEMA_FILES["hub"]]
    assert len(told) == len(list((store / "hub/schema").iterdir())), "a file of the schema is not named"
    tables = {name for text in told for name in re.findall(r"^CREATE TABLE (\w+) \(", text, re.MULTILINE)}
    for _ in range(2):
        database = Database.open(path, "hub")
        found = {name for (name,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        assert found == {*tables, "schema_version"}
        assert database.version == schema_number("hub") == 1
        database.close()


def test_a_new_store_is_made_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the end of the schema fails, the file has nothing of it, and the next one who opens it makes all."""
    path, (whole,) = tmp_path / "hub.duckdb", _STEPS("hub")
    with monkeypatch.context() as patch:
        patch.setattr(database_module, "_steps", lambda _: (f"{whole};CREATE TABLE jobs (again INTEGER)",))
        with pytest.raises(StoreError, match="already exists"):
            Database.open(path, "hub")
    with connect(path) as left:
        assert left.execute("SELECT table_name FROM duckdb_tables()").fetchall() == []
    database = Database.open(path, "hub")
    assert database.version == 1
    database.close()


def test_a_migration_brings_a_store_to_its_number_or_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows stay, a new store is like a migrated one, a failure changes nothing, and the version before refuses both."""
    path, new = tmp_path / "hub.duckdb", tmp_path / "new.duckdb"
    database = Database.open(path, "hub")
    database.execute("INSERT INTO marks VALUES ('k', 1)")
    database.close()
    with monkeypatch.context() as patch:
        patch.setattr(database_module, "_steps", step("ALTER TABLE marks ADD COLUMN why VARCHAR; SELECT error('no')"))
        with pytest.raises(StoreError, match="no"):
            Database.open(path, "hub")
        patch.setattr(database_module, "_steps", step("ALTER TABLE marks ADD COLUMN why VARCHAR DEFAULT 'x'"))
        for store, rows in ((path, [("k", 1, "x")]), (new, [])):
            database = Database.open(store, "hub")
            assert (database.version, database.execute("SELECT * FROM marks").fetchall()) == (2, rows)
            database.close()
    for store in (path, new):
        with pytest.raises(StoreError, match=r"schema 2 is newer than this version's \(1\): update"):
            Database.open(store, "hub")


def test_a_corrupt_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """A file that is no DuckDB file gives one StoreError naming it, and keeps its bytes."""
    path = tmp_path / "hub.duckdb"
    path.write_bytes(b"\xff\x00garbage" * 1000)
    with pytest.raises(StoreError, match=r"hub\.duckdb"):
        Database.open(path, "hub")
    assert path.read_bytes() == b"\xff\x00garbage" * 1000


def test_an_error_names_a_long_path_and_what_is_wrong(tmp_path: Path) -> None:
    """DuckDB's words come whole, however long the path that they begin with."""
    path = tmp_path / ("a" * 200) / ("b" * 200) / "hub.duckdb"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError) as caught:
        Database.open(path, "hub")
    assert str(caught.value).count(str(path)) == 2
    assert "not a valid DuckDB database file" in str(caught.value)


@pytest.mark.parametrize("number", [2, 22, 9999])
def test_a_store_of_another_number_is_refused_and_left_as_it_is(tmp_path: Path, number: int) -> None:
    """One line says which number it has, which this version has, and what to do."""
    path = tmp_path / "hub.duckdb"
    Database.open(path, "hub").close()
    with connect(path) as raw:
        raw.execute("UPDATE schema_version SET version = $1", [number])
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=rf"hub\.duckdb: its schema {number} is newer than this version's \(1\): .*new one$"
    ):
        Database.open(path, "hub")
    assert path.read_bytes() == before


def test_a_store_of_another_schema_is_refused(tmp_path: Path) -> None:
    """A hub store opened as a node store is named as such."""
    path = tmp_path / "x.duckdb"
    Database.open(path, "hub").close()
    with pytest.raises(StoreError, match="is not a node store"):
        Database.open(path, "node")


def test_a_transaction_rolls_back(tmp_path: Path) -> None:
    """An error inside the block leaves nothing behind."""
    database = Database.open(tmp_path / "hub.duckdb", "hub")
    with pytest.raises(ZeroDivisionError), database.transaction():
        database.execute("INSERT INTO marks VALUES ('k', 1)")
        raise ZeroDivisionError
    assert database.execute("SELECT count(*) FROM marks").fetchone() == (0,)


def test_an_unknown_query_is_named() -> None:
    """A missing query gives an error with its name."""
    database = Database.open(MEMORY, "hub")
    with pytest.raises(StoreError, match="no_such"):
        database.run("no_such")


def test_values_of_a_statement_search_for_no_module() -> None:
    """DuckDB imports pandas anew with each value: it is told at once that there is none, no path is searched."""
    sought: list[str] = []

    class Last:
        @staticmethod
        def find_spec(name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> None:
            sought.append(name)

    database = Database.open(MEMORY, "hub")
    sys.meta_path.append(Last)
    try:
        assert database.execute("SELECT $number, $words", {"number": 7, "words": ["a", None]}).fetchall()
    finally:
        sys.meta_path.remove(Last)
        database.close()
    assert "pandas" not in sought
