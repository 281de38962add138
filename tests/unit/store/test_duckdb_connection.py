"""Connections to DuckDB: what they may do by themselves."""

import inspect
from pathlib import Path
from types import FrameType

import duckdb
import pytest

from gpuwaste.store.duckdb_connection import connect


def test_a_connection_fetches_and_loads_nothing_by_itself(tmp_path: Path) -> None:
    """Extensions are neither downloaded nor taken from a home directory, and other settings do not change that."""
    for connection in (connect(), connect(tmp_path / "a.duckdb", {"threads": "2"})):
        with connection:
            names = ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions")
            values = connection.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in names))
            assert values.fetchone() == (False, False, False)


def test_a_statement_that_needs_an_extension_fails() -> None:
    """DuckDB names the extension for an address on the web instead of fetching it."""
    with connect() as connection, pytest.raises(duckdb.Error, match="httpfs"):
        connection.execute("SELECT * FROM read_csv('https://192.0.2.1/x.csv')")


def test_a_file_can_be_opened_for_reading_alone(tmp_path: Path) -> None:
    """With read_only a statement that writes is refused."""
    path = tmp_path / "b.duckdb"
    with connect(path) as made:
        made.execute("CREATE TABLE t (a INTEGER)")
    with connect(path, read_only=True) as connection, pytest.raises(duckdb.Error, match="read-only"):
        connection.execute("INSERT INTO t VALUES (1)")


def test_no_variable_of_the_caller_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name without a table is an error, and no Python runs within the statement: it would drop a Ctrl-C."""
    asked = list[FrameType | None]()
    found = inspect.currentframe

    def current() -> FrameType | None:
        asked.append(found())
        return asked[-1]

    monkeypatch.setattr(inspect, "currentframe", current)
    with connect() as connection:
        rows = connection.sql("SELECT 1 AS a")  # DuckDB would find it by this name
        for each in (connection, connection.cursor()):
            with pytest.raises(duckdb.CatalogException, match="rows"):
                each.execute("SELECT * FROM rows")
        assert rows.fetchall() == [(1,)]
    assert asked == []
