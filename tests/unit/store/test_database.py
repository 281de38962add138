"""The store opens, migrates and refuses what it cannot read, without touching it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from gpuwaste.core.errors import StoreError
from gpuwaste.store.database import MEMORY, Database, migrations
from gpuwaste.store.duckdb_connection import connect


def test_a_new_store_has_the_newest_schema(tmp_path: Path) -> None:
    """Opening an empty path applies every migration, and opening it again applies none."""
    path = tmp_path / "hub.duckdb"
    for _ in range(2):
        database = Database.open(path, "hub")
        assert database.version == len(migrations("hub"))
        database.close()


def test_a_new_store_is_made_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last migration fails, the file has none of them, and the next one who opens it makes all."""
    path, steps = tmp_path / "hub.duckdb", migrations("hub")
    with monkeypatch.context() as patch:
        failing = (*steps[:-1], "CREATE TABLE jobs (again INTEGER)")
        patch.setattr("gpuwaste.store.database.migrations", lambda _: failing)
        with pytest.raises(StoreError, match="already exists"):
            Database.open(path, "hub")
    with connect(path) as left:
        assert left.execute("SELECT table_name FROM duckdb_tables()").fetchall() == []
    database = Database.open(path, "hub")
    assert database.version == len(steps)
    database.close()


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


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    """A store with a migration that this version does not know says that gpuwaste must be updated."""
    path = tmp_path / "hub.duckdb"
    Database.open(path, "hub").close()
    raw = connect(path)
    raw.execute("INSERT INTO schema_version VALUES ('hub', 9999)")
    raw.close()
    with pytest.raises(StoreError, match="newer"):
        Database.open(path, "hub")


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
