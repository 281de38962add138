"""Our tables in the PostgreSQL database of a lake's catalog, and the lease that says which hub runs on the lake.

The lease says only when another hub may take over. What keeps a late holder from writing is the fence in the lake.
"""

import threading
from collections.abc import Sequence
from typing import Any, Final

import duckdb

from gpuwaste.core.errors import StoreError
from gpuwaste.store.database import MEMORY
from gpuwaste.store.duckdb_connection import connect, load_extension, quoted, reason

_DATABASE: Final = quoted("catalog")
LEASE_S: Final = 15
_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS gpuwaste_lease (hub int PRIMARY KEY, holder text NOT NULL, until timestamptz)",
    "INSERT INTO gpuwaste_lease VALUES (1, '', '-infinity') ON CONFLICT DO NOTHING",
)
_TAKE: Final = (
    "UPDATE gpuwaste_lease SET holder = {holder}, until = now() + interval '{seconds} seconds'"
    " WHERE holder = {holder} OR until < now()"
)
_GIVE_UP: Final = "UPDATE gpuwaste_lease SET until = '-infinity' WHERE holder = {holder}"
_HOLDER: Final = "SELECT CASE WHEN until > now() THEN holder ELSE '' END FROM gpuwaste_lease"
_MOST_NAMED: Final = 200


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


class LakeLease:
    """The lease as one hub takes it. For one thread; each question has a connection that lasts."""

    def __init__(self, catalog: str, holder: str, seconds: int = LEASE_S) -> None:
        """`catalog` is the database as libpq's keywords; `holder` is what others are told, another for each process."""
        self.holder = holder[:_MOST_NAMED]
        self._seconds = seconds
        self._catalog = LakeCatalog(catalog, "the lease of the lake", _CREATE)

    def take(self) -> str:
        """Take or prolong the lease where it is free or ours; return who has it then, for the next seconds.

        Raises StoreError where PostgreSQL does not answer: who has it is not known then.
        """
        self._catalog.tell(_TAKE.format(holder=quoted(self.holder), seconds=self._seconds))
        found = self._catalog.ask(_HOLDER)
        return str(found[0][0]) if found else ""

    def give_up(self) -> None:
        """Let another hub take it now. Raises StoreError."""
        try:
            self._catalog.tell(_GIVE_UP.format(holder=quoted(self.holder)))
        finally:
            self.close()

    def close(self) -> None:
        """Leave PostgreSQL; the lease ends when its time is over."""
        self._catalog.close()
