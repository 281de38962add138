"""LakeCatalog: tables of ours in the PostgreSQL database of a lake's catalog, beside those of the lake."""

import threading
from collections.abc import Sequence
from typing import Any, Final

import duckdb

from gpuwaste.core.errors import StoreError
from gpuwaste.store.cursor import reason
from gpuwaste.store.database import MEMORY
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.store.lake_extensions import load_extension, quoted

_DATABASE: Final = quoted("catalog")


class LakeCatalog:
    """PostgreSQL as the lake reaches it; for any thread, one after the other. The connection lasts until an error."""

    def __init__(self, catalog: str, what: str, create: Sequence[str]) -> None:
        """`catalog` is the database as libpq's keywords; `create` makes the tables, `what` names them in errors."""
        self._catalog = catalog
        self._what = what
        self._create = create
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def tell(self, statement: str) -> None:
        """Have PostgreSQL execute a statement, or several in one transaction. Raises StoreError."""
        self._do(f"CALL postgres_execute({_DATABASE}, {quoted(statement)})")

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT of PostgreSQL's. Raises StoreError."""
        return self._do(f"FROM postgres_query({_DATABASE}, {quoted(query)})")

    def close(self) -> None:
        """Leave PostgreSQL; the next call connects again. A call that is under way, or hangs, is not waited for."""
        if self._lock.acquire(blocking=False):
            try:
                self._leave()
            finally:
                self._lock.release()

    def _do(self, sql: str) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connected().execute(sql).fetchall()
            except duckdb.Error as error:
                self._leave()
                raise StoreError(f"{self._what}: {reason(error)}") from error

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            connection = connect(MEMORY, {"threads": "1"})
            try:
                load_extension(connection, "postgres_scanner")
                connection.execute(f"ATTACH {quoted(self._catalog)} AS catalog (TYPE postgres)")
                for statement in self._create:
                    connection.execute(f"CALL postgres_execute({_DATABASE}, {quoted(statement)})")
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection
