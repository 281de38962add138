"""gpuwaste's tables in the PostgreSQL database of a lake's catalog, and the lease of the hub that runs on the lake.

The lease only decides when another hub may take over. The fence in the lake keeps a late holder from writing.
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
    """PostgreSQL as the lake connects to it; for any thread, one at a time. The connection is kept until an error."""

    def __init__(self, catalog: str, what: str, create: Sequence[str]) -> None:
        """`catalog` is the database as libpq's keywords; `create` makes the tables, `what` names them in errors."""
        self._catalog = catalog
        self._what = what
        self._create = create
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def tell(self, statement: str) -> None:
        """Execute a statement in PostgreSQL, or several in one transaction. Raises StoreError."""
        self._do(f"CALL postgres_execute({_DATABASE}, {quoted(statement)})")

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT in PostgreSQL. Raises StoreError."""
        return self._do(f"FROM postgres_query({_DATABASE}, {quoted(query)})")

    def close(self) -> None:
        """Disconnect from PostgreSQL, not waiting for a call in progress or hanging; the next call connects again."""
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
    """The lease for one hub. For one thread; its connection to PostgreSQL is kept open."""

    def __init__(self, catalog: str, holder: str, seconds: int = LEASE_S) -> None:
        """`catalog` is the database as libpq's keywords; `holder` is the name shown to others, unique per process."""
        self.holder = holder[:_MOST_NAMED]
        self._seconds = seconds
        self._catalog = LakeCatalog(catalog, "the lease of the lake", _CREATE)

    def take(self) -> str:
        """Take or renew the lease where it is free or ours; return its holder for the next seconds.

        Raises StoreError where PostgreSQL does not answer: the holder is unknown then.
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
        """Disconnect from PostgreSQL; the lease ends when it expires."""
        self._catalog.close()
