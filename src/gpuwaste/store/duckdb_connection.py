"""The only module that opens DuckDB or loads its signed extensions; Cursor, the rows of a statement.

By default DuckDB downloads an extension from its vendor's server when a statement seems to need one. Here none is
downloaded or loaded automatically: those for lakes are loaded by the path of a file that a Python package has
installed, which these settings allow.

A name that is not a table is not looked up as a Python variable either: that search could also lose a Ctrl-C.

DuckDB computes the last rows of a statement when they are fetched, which can fail, too.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb

from gpuwaste.core.errors import MAX_WORDS, StoreError

_Found = TypeVar("_Found")
_LATE: Final = "Attempting to execute an unsuccessful or closed pending query result"
_LATE_CAUSE: Final = "Error: "
_SETTINGS: Final = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
_PACKAGES: Final = {"httpfs": "gpuwaste-lake-s3"}


class Cursor:
    """The result of `Database.execute`; every method raises StoreError, made by `failed`."""

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
    """Let DuckDB drop a statement that a Python exception ended. Raises KeyboardInterrupt where that was the exception.

    DuckDB replaces the exception with another. And (1.5) it holds its file for such a statement, a COMMIT too, until
    the connection runs the next one: closing it and opening the file again in this process would hang forever.
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


def connect(
    path: Path | str = ":memory:", options: Mapping[str, str] | None = None, *, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open a file, or a database in memory, with more of DuckDB's settings in `options`.

    Raises duckdb.Error.
    """
    config: dict[str, str | bool | int | float | list[str]] = {**_SETTINGS, **(options or {})}
    return duckdb.connect(str(path), read_only=read_only, config=config)  # noqa: TID251 the one place


def load_extension(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Load an extension from its installed file. Raises StoreError without one, and where DuckDB rejects it."""
    file = _file(name)
    try:
        connection.execute(f"LOAD {quoted(file)}")
    except duckdb.Error as error:
        raise StoreError(f"{file}: {reason(error)}") from error


def quoted(text: object) -> str:
    """Return a text quoted for SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def _file(name: str) -> Path:
    try:
        folder = resources.files(f"duckdb_extension_{name}")
    except ModuleNotFoundError as error:
        package = f"duckdb-extension-{name.replace('_', '-')}"
        ours = _PACKAGES.get(name, "gpuwaste-lake")
        wanted = f"the package {ours}, or with pip {package}=={duckdb.__version__}"
        raise StoreError(f"no extension {name} for a lake: install {wanted}") from error
    return Path(str(folder)) / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
