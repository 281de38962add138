"""Cursor: the rows of a statement. DuckDB computes the last of them when they are asked for, which can fail, too."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import duckdb

from gpuwaste.core.errors import MAX_WORDS, StoreError

_Found = TypeVar("_Found")
_LATE: Final = "Attempting to execute an unsuccessful or closed pending query result"
_LATE_CAUSE: Final = "Error: "


class Cursor:
    """What `Database.execute` returns; every method raises StoreError, made by `failed`."""

    __slots__ = ("_connection", "_failed")

    def __init__(self, connection: duckdb.DuckDBPyConnection, failed: Callable[[duckdb.Error], StoreError]) -> None:
        self._connection = connection
        self._failed = failed

    @property
    def description(self) -> list[tuple[Any, ...]]:
        """A tuple for each column, its name first (PEP 249)."""
        return self._connection.description or []

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        return self._asked(self._connection.fetchall)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, None after the last one."""
        return self._asked(self._connection.fetchone)

    def fetchmany(self, most: int) -> list[tuple[Any, ...]]:
        """Return the next rows, none after the last one."""
        return self._asked(lambda: self._connection.fetchmany(most))

    def fetchnumpy(self) -> dict[str, Any]:
        """Return all rows that are left as arrays by column."""
        return self._asked(self._connection.fetchnumpy)

    def _asked(self, ask: Callable[[], _Found]) -> _Found:
        try:
            return ask()
        except duckdb.Error as error:
            raise self._failed(error) from error
        except BaseException as error:
            leave_statement(self._connection, error)
            raise


def leave_statement(connection: duckdb.DuckDBPyConnection, error: BaseException) -> None:
    """Let DuckDB forget a statement that an exception of Python's ended. Raises KeyboardInterrupt where that was one.

    DuckDB puts another exception in its place. And (1.5) it holds its file for such a statement, a COMMIT too, until
    the connection has the next one: to close it and to open the file again in this process would last forever.
    """
    with suppress(duckdb.Error):
        connection.execute("SELECT 1")
    if isinstance(error.__cause__, KeyboardInterrupt):
        raise KeyboardInterrupt from error


def reason(error: duckdb.Error) -> str:
    """Return DuckDB's line that names the cause."""
    lines = str(error).splitlines()
    late = len(lines) > 1 and lines[0].endswith(_LATE)
    return (lines[1].removeprefix(_LATE_CAUSE) if late else lines[0])[:MAX_WORDS]
