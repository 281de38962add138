"""One DuckDB file: opening, its schema, named queries.

A schema (`hub`, `node`) is one file of SQL for each subject, in the order of SCHEMA_FILES, and has number 1. A release
changes it by a migration, the file migrations/NNNN_name.sql in the schema's folder, from 0002 on, which updates a
store from the number before to its own. A query is queries/NAME.sql there, one statement. Another package keeps its
queries next to its own code: query `waste.NAME` is gpuwaste/ledger/queries/NAME.sql. DuckDB lets only one process hold
a file; threads share it through cursors.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

import duckdb

from gpuwaste.core.errors import StoreError
from gpuwaste.core.job_states import SETS
from gpuwaste.core.room_files import room_files
from gpuwaste.store.duckdb_connection import Cursor, connect, leave_statement, reason

Schema = Literal["hub", "node"]
MEMORY: Final = ":memory:"
SCHEMA_FILES: Final[Mapping[Schema, tuple[str, ...]]] = {
    "hub": tuple(f"hub/schema/{subject}.sql" for subject in ("jobs", "machine", "ledger", "advice", "act", "kernel")),
    "node": ("node/schema.sql",),
}
_PAGE: Final = 10_000
_INCLUDE = re.compile(r"^-- include: (\w+)$", re.MULTILINE)
_STATE_SET = re.compile(rf"\{{({'|'.join(SETS)})\}}")


class _WithoutPandas:
    """Avoids a search of sys.path: DuckDB imports pandas again for each value of a statement, and it is not used."""

    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("gpuwaste works without pandas", name=name)


sys.meta_path.insert(0, _WithoutPandas)


@dataclass(slots=True)
class FatalStoreError:
    """Shared by all handles of an open store: why DuckDB has given it up, empty while it has not."""

    given_up: str = ""


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """A query's rows with the names of their columns: faster than dictionaries for thousands of rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def pick(self, *names: str) -> list[tuple[Any, ...]]:
        """Return these columns, at least two, of each row."""
        return list(map(itemgetter(*map(self.columns.index, names)), self.rows))


class Database:
    """An open store of one schema. Not for concurrent use: each thread takes its own `cursor()`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, schema: Schema, where: str) -> None:
        self._connection = connection
        self.schema: Schema = schema
        self.where = where
        self.fate = FatalStoreError()

    @classmethod
    def open(
        cls, path: Path | Literal[":memory:"], schema: Schema, options: Mapping[str, str] | None = None
    ) -> "Database":
        """Open or create the store at `path` with this version's schema.

        `options` are DuckDB settings. Raises StoreError where the file is corrupt, has a schema that this version does
        not know, is held by another process, or cannot be written; the file is not changed then.
        """
        try:
            connection = connect(path, {"threads": "1", **(options or {})})
        except duckdb.Error as error:
            raise StoreError(f"{path}: cannot be opened: {reason(error)}") from error
        database = cls(connection, schema, str(path))
        try:
            # DuckDB takes a program without a file (python -c, like the agent's children) for an interactive one: after
            # two seconds, in migrations too, it would draw a progress bar on standard output, which the parent reads.
            database.execute("SET enable_progress_bar = false")
            database._migrate()
        except BaseException:
            connection.close()
            raise
        return database

    def cursor(self) -> "Database":
        """Return a handle for another thread on the same open file. Raises StoreError where it is closed."""
        try:
            connection = self._connection.cursor()
        except duckdb.Error as error:
            raise StoreError(f"{self.where}: {reason(error)}") from error
        handle = self._beside(connection)
        handle.fate = self.fate
        return handle

    @property
    def given_up(self) -> str:
        """Why DuckDB rejects every statement from now on, through each handle; empty where it does not.

        The cause is a checkpoint on a full disk, or a defect of DuckDB. Committed data is read again when the store is
        next opened.
        """
        return self.fate.given_up

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._connection.close()

    def interrupt(self) -> None:
        """Interrupt the statement that another thread runs on this handle: it raises StoreError there."""
        self._connection.interrupt()

    @property
    def version(self) -> int:
        """The number of the store's schema; 0 for an empty file."""
        if not self.has_table("schema_version"):
            return 0
        found = self.execute("SELECT schema, max(version) FROM schema_version GROUP BY schema").fetchone()
        if found is None or found[0] != self.schema:
            raise StoreError(f"{self.where}: is not a {self.schema} store: move it or set another state_dir")
        return int(found[1])

    def has_table(self, name: str) -> bool:
        """Return whether a table exists. A search in DuckDB's list would read the metadata of all tables."""
        try:
            self.execute(f"DESCRIBE {name}")
        except StoreError as error:
            if isinstance(error.__cause__, duckdb.CatalogException):
                return False
            raise
        return True

    def check_version(self) -> None:
        """Raise StoreError where the store, written by another process, has another version's schema."""
        at, own = self.version, schema_number(self.schema)
        if at != own:
            raise StoreError(f"{self.where}: its schema is {at}, this version's is {own}: update gpuwaste on all hubs")

    def text(self, name: str) -> str:
        """Return the SQL of a query for this kind of store. Raises StoreError where there is none."""
        return query_text(name)

    def run(self, name: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> Cursor:
        """Execute the named query and return its cursor. Raises StoreError."""
        return self.execute(self.text(name), parameters)

    def rows(self, name: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> list[dict[str, Any]]:
        """Execute the named query and return its rows as dictionaries. Raises StoreError."""
        answer = self.answer(name, parameters)
        return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]

    def answer(self, name: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> QueryAnswer:
        """Execute the named query and return its rows unconverted. Raises StoreError."""
        return self.answer_to(self.text(name), parameters)

    def answer_to(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> QueryAnswer:
        """Execute a query that is composed of named ones and return its rows unconverted. Raises StoreError."""
        cursor = self.execute(sql, parameters)
        return QueryAnswer(tuple(column[0] for column in cursor.description), cursor.fetchall())

    def batches(self, name: str, parameters: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows of the named query without holding all of them. Raises StoreError."""
        cursor = self.run(name, parameters)
        columns = [column[0] for column in cursor.description]
        while page := cursor.fetchmany(_PAGE):
            yield from (dict(zip(columns, row, strict=True)) for row in page)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit at the end of the block, roll back on any error. Raises StoreError where the commit fails."""
        self.execute("BEGIN TRANSACTION")
        try:
            yield
        except BaseException:
            with suppress(duckdb.Error):  # of a store that is given up: the first error has the reason
                self._connection.rollback()
            raise
        self.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Commit the changes of the block, as `transaction` does. Raises StoreError."""
        with self.transaction():
            yield

    def execute(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> Cursor:
        """Execute a statement that is not a named query (ATTACH, CHECKPOINT, a multi-row INSERT). Raises StoreError."""
        try:
            return Cursor(self._connection.execute(sql, parameters), self._failed)
        except duckdb.Error as error:
            raise self._failed(error) from error
        except BaseException as error:
            leave_statement(self._connection, error)
            raise

    def _failed(self, error: duckdb.Error) -> StoreError:
        words = reason(error)
        if isinstance(error, duckdb.FatalException):
            self.fate.given_up = self.fate.given_up or words
        return StoreError(f"{self.where}: {words}")

    def _beside(self, connection: duckdb.DuckDBPyConnection) -> "Database":
        """Return a handle like this one on a connection to the same store."""
        return Database(connection, self.schema, self.where)

    def _migrate(self) -> None:
        """Migrate the store to this version's schema; one transaction per step, so that none is applied in part."""
        at, steps = self.version, _steps(self.schema)
        if at > len(steps):
            raise StoreError(
                f"{self.where}: its schema {at} is newer than this version's ({len(steps)}): update gpuwaste, or move"
                " the store away for a new one"
            )
        for number, sql in enumerate(steps[at:], start=at + 1):
            with self.transaction():
                self.execute(sql)
                self.execute("CREATE TABLE IF NOT EXISTS schema_version (schema VARCHAR, version INTEGER)")
                self.execute("INSERT INTO schema_version VALUES (?, ?)", [self.schema, number])


@cache
def query_text(name: str, ending: str = ".sql") -> str:
    """Return the SQL of a query, with `-- include: NAME` lines replaced by that query's text.

    A set of job states is written as `{failed_states}` (core/job_states.py); `ending` is that of the file. Raises
    StoreError where there is no such query.
    """
    file = _query_files().get(name + ending)
    if file is None:
        raise StoreError(f"no query {name!r}: this is a bug in gpuwaste")
    text = _INCLUDE.sub(lambda match: query_text(match[1]), file.read_text(encoding="utf-8"))
    return _STATE_SET.sub(lambda match: str(tuple(sorted(SETS[match[1]]))), text)


@cache
def _query_files() -> Mapping[str, Path]:
    return {file.name: file for file in room_files("*/queries/*.sql", "*/*/queries/*.sql")}


def schema_number(schema: Schema) -> int:
    """Return the number of this version's schema."""
    return len(_steps(schema))


@cache
def _steps(schema: Schema) -> tuple[str, ...]:
    """Return the SQL of a schema, then that of each migration in order."""
    store = resources.files("gpuwaste.store")
    folder = store / schema / "migrations"
    later = sorted((f for f in folder.iterdir()), key=lambda f: f.name) if folder.is_dir() else []
    for number, file in enumerate(later, start=2):
        if not file.name.startswith(f"{number:04d}_"):
            raise StoreError(f"migration {file.name}: expected number {number:04d}: this is a bug in gpuwaste")
    whole = "\n".join((store / name).read_text(encoding="utf-8") for name in SCHEMA_FILES[schema])
    return (whole, *(file.read_text(encoding="utf-8") for file in later))


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its name, its type as DuckDB writes it, and whether it may be NULL."""

    name: str
    kind: str
    nullable: bool


@cache
def schema_tables(schema: Schema) -> Mapping[str, tuple[TableColumn, ...]]:
    """Return the columns of each table of this version's schema, `schema_version` too, in their order."""
    with closing(Database.open(MEMORY, schema)) as file:
        found = file.execute(
            "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() WHERE NOT internal"
            " ORDER BY table_name, column_index"
        ).fetchall()
    tables: dict[str, list[TableColumn]] = {}
    for table, *column in found:
        tables.setdefault(table, []).append(TableColumn(*column))
    return {table: tuple(columns) for table, columns in tables.items()}
