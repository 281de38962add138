"""LakeLease: which of several hubs runs on a lake, as a row in PostgreSQL says, in the database's own time.

The lease says only when another hub may take over. What keeps a late holder from writing is the fence in the lake.
"""

from typing import Final

import duckdb

from gpuwaste.core.errors import StoreError
from gpuwaste.store.cursor import reason
from gpuwaste.store.database import MEMORY
from gpuwaste.store.lake_extensions import load_extension, quoted

LEASE_S: Final = 15
_DATABASE: Final = "catalog"
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


class LakeLease:
    """The lease as one hub takes it. For one thread; each question has a connection that lasts."""

    def __init__(self, catalog: str, holder: str, seconds: int = LEASE_S) -> None:
        """`catalog` is the database as libpq's keywords; `holder` is what others are told, another for each process."""
        self._catalog = catalog
        self.holder = holder[:_MOST_NAMED]
        self._seconds = seconds
        self._connection: duckdb.DuckDBPyConnection | None = None

    def take(self) -> str:
        """Take or prolong the lease where it is free or ours; return who has it then, for the next seconds.

        Raises StoreError where PostgreSQL does not answer: who has it is not known then.
        """
        try:
            self._tell(_TAKE.format(holder=quoted(self.holder), seconds=self._seconds))
            found = self._connected().execute(f"FROM postgres_query({quoted(_DATABASE)}, {quoted(_HOLDER)})").fetchall()
        except duckdb.Error as error:
            self.close()
            raise StoreError(f"the lease of the lake: {reason(error)}") from error
        return str(found[0][0]) if found else ""

    def give_up(self) -> None:
        """Let another hub take it now. Raises StoreError."""
        try:
            self._tell(_GIVE_UP.format(holder=quoted(self.holder)))
        except duckdb.Error as error:
            raise StoreError(f"the lease of the lake: {reason(error)}") from error
        finally:
            self.close()

    def close(self) -> None:
        """Leave PostgreSQL; the lease ends when its time is over."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _tell(self, statement: str) -> None:
        self._connected().execute(f"CALL postgres_execute({quoted(_DATABASE)}, {quoted(statement)})")

    def _connected(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            connection = duckdb.connect(MEMORY, config={"threads": "1"})
            try:
                load_extension(connection, "postgres_scanner")
                connection.execute(f"ATTACH {quoted(self._catalog)} AS {_DATABASE} (TYPE postgres)")
                for statement in _CREATE:
                    connection.execute(f"CALL postgres_execute({quoted(_DATABASE)}, {quoted(statement)})")
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection
