"""A store in a lake: DuckLake, its catalog in PostgreSQL, its data as Parquet files in a directory or in S3.

The queries are those of a file. Where the lake lacks something (RETURNING, sequences, a MERGE with two UPDATEs), a
query has a second form NAME.lake.sql: several statements, separated by lines with a semicolon, of which the last
returns the rows. Names of temporary tables need no schema: DuckDB searches them before the lake's.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self

import duckdb

from gpuwaste.core.errors import StoreError
from gpuwaste.core.text import storable
from gpuwaste.store.database import MEMORY, Database, Schema, query_text, schema_number, schema_tables
from gpuwaste.store.duckdb_connection import Cursor, connect, load_extension, quoted
from gpuwaste.store.lake_s3 import S3Place

_LAKE: Final = "lake"
_FORM: Final = ".lake.sql"
_EXTENSIONS: Final = ("ducklake", "postgres_scanner")
_PARAMETER: Final = re.compile(r"\$([a-z_]+)\b")
_COMMENT: Final = re.compile(r"--.*")
_READ_ONLY: Final = "this hub is a standby and only reads the lake"
_TAKEN: Final = "another hub has taken over this lake: restart this one to take it back; one hub at a time may run"
MoveState = Literal["filling", "moved"]
MOVE_TABLE: Final = "move_state"  # only in a lake that no hub may use: one row, the state
_NOT_USED: Final[Mapping[MoveState, str]] = {
    "filling": "a move into this lake is not finished: run `gpuwaste hub move --to lake` again",
    "moved": 'this lake was moved to a file: set [hub] store = "file"; `gpuwaste hub move --reopen` uses it again'
    " as it was then",
}
# Rows of a few numbers that change with every batch: in the catalog itself, not in a file for each change.
_INLINED: Final = ("fence", "marks")
_INLINED_ROWS: Final = 1000
_NO_FOLDER: Final = "/nonexistent"
# Statistics of tables that were never written, as DuckLake writes them for an empty one: none of a list, map or struct.
# Only for the schema's tables, which only the fence's holder writes: hubs standing by may append to others now.
_EMPTY: Final = (
    (
        "INSERT INTO __ducklake_metadata_lake.ducklake_table_column_stats (table_id, column_id, contains_null)"
        " SELECT table_id, column_id, false FROM __ducklake_metadata_lake.ducklake_column"
        " WHERE end_snapshot IS NULL AND column_type NOT IN ('list', 'map', 'struct')"
        " AND table_id IN (SELECT table_id FROM __ducklake_metadata_lake.ducklake_table"
        " WHERE end_snapshot IS NULL AND list_contains($tables, table_name))"
        " AND table_id NOT IN (SELECT table_id FROM __ducklake_metadata_lake.ducklake_table_stats)"
    ),
    (
        "INSERT INTO __ducklake_metadata_lake.ducklake_table_stats"
        " (table_id, record_count, next_row_id, file_size_bytes)"
        " SELECT table_id, 0, 0, 0 FROM __ducklake_metadata_lake.ducklake_table"
        " WHERE end_snapshot IS NULL AND list_contains($tables, table_name)"
        " AND table_id NOT IN (SELECT table_id FROM __ducklake_metadata_lake.ducklake_table_stats)"
    ),
)
# A reader's snapshot lasts for its transaction, at most minutes; unused files are removed one hour later.
_OPTIONS: Final = {"expire_older_than": "1 hour", "delete_older_than": "1 hour"}
# Commits of several hubs conflict at the number of the next snapshot: the second one retries. DuckLake's own waits
# grow to seconds, in which the others commit repeatedly.
_RETRIES: Final = {"ducklake_max_retry_count": 100, "ducklake_retry_wait_ms": 20, "ducklake_retry_backoff": 1.0}
_APPENDED_ROWS: Final = 100_000  # kept in the catalog: an append creates no file
_APPENDER_MB: Final = 256


@dataclass(frozen=True, slots=True)
class LakeLocation:
    """Location of a lake: the PostgreSQL database of its catalog as libpq's keywords, and the place of its files."""

    catalog: str
    data: Path | S3Place


class LakeDatabase(Database):
    """An open lake of one schema; `token` is the fence's value while this process may write, None: never."""

    created_as: ClassVar[MoveState | None] = None
    """The state of a move, for a newly created lake."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, schema: Schema, where: str, token: int | None = 0
    ) -> None:
        super().__init__(connection, schema, where)
        self._token = token

    @classmethod
    def open_lake(cls, location: LakeLocation, schema: Schema, options: Mapping[str, str] | None = None) -> Self:
        """Open or create the lake with this version's schema and take it over from the previous writer.

        Raises StoreError where PostgreSQL or the directory cannot be used, or its schema is unknown to this version.
        """
        database = cls(_connection(options), schema, f"lake {location.data}")
        try:
            database._attach(location, "DATA_INLINING_ROW_LIMIT 0")
            database._check_use()
            database._migrate()
            database._take_over()
        except BaseException:
            database.close()
            raise
        return database

    @classmethod
    def open_reader(cls, location: LakeLocation, schema: Schema, options: Mapping[str, str] | None = None) -> Self:
        """Open a lake that another process writes: each transaction reads the data committed before it began.

        Raises StoreError as `open_lake` does, and where the lake does not exist yet or has another version's schema.
        """
        database = cls(_connection(options), schema, f"lake {location.data}", None)
        try:
            database._attach(location, "READ_ONLY")
            database.check_version()
        except BaseException:
            database.close()
            raise
        return database

    @classmethod
    def open_appender(cls, location: LakeLocation, schema: Schema) -> Self:
        """Open a lake that another process writes, to append to tables that only grow: that process keeps the fence.

        Rows are kept in the catalog: no text may have NUL, no column a list. Raises StoreError as `open_reader` does.
        """
        database = cls(_connection({"memory_limit": f"{_APPENDER_MB}MB"}), schema, f"lake {location.data}", None)
        try:
            database._attach(location, f"DATA_INLINING_ROW_LIMIT {_APPENDED_ROWS}")
            database.check_version()
        except BaseException:
            database.close()
            raise
        return database

    def text(self, name: str) -> str:
        """Return the SQL of a query, in the lake's form where it has one. Raises StoreError where there is none."""
        return _text(name)

    def execute(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> Cursor:
        """Execute a statement, or the statements of a lake's form, each with the parameters that it names."""
        parameters = _without_nul(parameters)
        parts = _parts(sql)
        if len(parts) == 1 or not isinstance(parameters, Mapping):
            return super().execute(sql, parameters)
        for part, names in parts[:-1]:
            super().execute(part, {name: parameters[name] for name in names})
        part, names = parts[-1]
        return super().execute(part, {name: parameters[name] for name in names})

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Commit the changes of the block, if no other hub has taken over by then. Raises StoreError."""
        if self._token is None:
            raise StoreError(f"{self.where}: {_READ_ONLY}")
        with self.transaction():
            # The update of the row makes PostgreSQL's catalog reject the commit if the row is changed until then.
            held = self.execute("UPDATE fence SET token = token WHERE token = $token", {"token": self._token})
            if held.fetchall() != [(1,)]:
                raise StoreError(f"{self.where}: {_TAKEN}")
            yield

    def _beside(self, connection: duckdb.DuckDBPyConnection) -> Database:
        handle = LakeDatabase(connection, self.schema, self.where, self._token)
        handle.execute(f"USE {_LAKE}")
        return handle

    def _attach(self, location: LakeLocation, options: str) -> None:
        self.execute("SET enable_progress_bar = false")  # as in a file's `open`
        for name in _EXTENSIONS:
            load_extension(self._connection, name)
        if isinstance(location.data, S3Place):
            location.data.prepare(self._connection)
        for setting, value in _RETRIES.items():
            self.execute(f"SET {setting} = {value}")
        catalog, data = quoted(f"ducklake:postgres:{location.catalog}"), quoted(f"{location.data}/")
        self.execute(f"ATTACH {catalog} AS {_LAKE} (DATA_PATH {data}, {options})")
        self.execute(f"USE {_LAKE}")

    def _migrate(self) -> None:
        """Create the tables as in a file, without its keys and sequences."""
        if self.version > 0:
            super()._migrate()
            return
        with self.transaction():
            for table, columns in schema_tables(self.schema).items():
                made = (f'"{c.name}" {c.kind}{"" if c.nullable else " NOT NULL"}' for c in columns)
                self.execute(f'CREATE TABLE "{table}" ({", ".join(made)})')
            self.execute("CREATE TABLE fence (token BIGINT NOT NULL)")
            self.execute("INSERT INTO fence VALUES (0)")
            self.execute("INSERT INTO schema_version VALUES (?, ?)", [self.schema, schema_number(self.schema)])
            if self.created_as:
                self.note_move(self.created_as)
        for option, value in _OPTIONS.items():
            self.execute(f"CALL {_LAKE}.set_option({quoted(option)}, {quoted(value)})")
        for table in _INLINED:
            rows, of = _INLINED_ROWS, quoted(table)
            self.execute(f"CALL {_LAKE}.set_option('data_inlining_row_limit', {rows}, table_name => {of})")

    def _note_empty_tables(self) -> None:
        """Give each table that was never written the statistics of an empty one, in the catalog.

        DuckLake caches a table's statistics for a transaction. Where there are none it queries PostgreSQL again, for
        each column of the table in each statement.
        """
        with self.transaction():
            for statement in _EMPTY:
                self.execute(statement, {"tables": list(schema_tables(self.schema))})

    @property
    def move_state(self) -> MoveState | None:
        """The state of a move of this lake, None where there is none."""
        if not self.has_table(f"{_LAKE}.{MOVE_TABLE}"):
            return None
        rows = self.execute(f"SELECT state FROM {_LAKE}.{MOVE_TABLE}").fetchall()  # noqa: S608 names of ours
        state: MoveState = rows[0][0]
        return state

    def note_move(self, state: MoveState) -> None:
        """Keep others from using this lake from the end of the transaction on, and store the reason."""
        self.execute(f"CREATE TABLE {_LAKE}.{MOVE_TABLE} (state VARCHAR NOT NULL)")
        self.execute(f"INSERT INTO {_LAKE}.{MOVE_TABLE} VALUES (?)", [state])  # noqa: S608 names of ours

    def forget_move(self) -> None:
        """Let others use this lake from the end of the transaction on."""
        self.execute(f"DROP TABLE IF EXISTS {_LAKE}.{MOVE_TABLE}")

    def check_version(self) -> None:
        """Raise StoreError where the lake has another version's schema, or was moved."""
        super().check_version()
        self._check_use()

    def _check_use(self) -> None:
        """Raise StoreError where a hub may not use this lake."""
        state = self.move_state
        if state is not None:
            raise StoreError(f"{self.where}: {_NOT_USED[state]}")

    def _take_over(self) -> None:
        with self.transaction():
            self.execute("UPDATE fence SET token = token + 1")
            self._token = int(self.execute("SELECT token FROM fence").fetchall()[0][0])
            self._begin(self._token)
        self._note_empty_tables()

    def _begin(self, token: int) -> None:
        """Run the steps of taking over, in its transaction."""


def _connection(options: Mapping[str, str] | None) -> duckdb.DuckDBPyConnection:
    settings = {"threads": "1", "secret_directory": _NO_FOLDER}  # no keys from a home directory
    return connect(MEMORY, {**settings, **(options or {})})


@cache
def _text(name: str) -> str:
    try:
        return query_text(name, _FORM)
    except StoreError:
        return query_text(name)


def _without_nul(
    parameters: Mapping[str, Any] | Sequence[Any] | None,
) -> Mapping[str, Any] | Sequence[Any] | None:
    """Return parameters with NUL escaped as in all texts of a lake: its catalog cannot compare others."""
    if isinstance(parameters, Mapping):
        return {name: _storable(value) for name, value in parameters.items()}
    return None if parameters is None else [_storable(value) for value in parameters]


def _storable(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_storable(part) for part in value] if any(isinstance(part, str) for part in value) else value
    return storable(value) if isinstance(value, str) and "\0" in value else value


@cache
def _parts(sql: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the statements of a query with the names of their parameters."""
    parts = sql.split("\n;\n")
    return tuple((part, tuple(sorted(set(_PARAMETER.findall(_COMMENT.sub("", part)))))) for part in parts)
