"""LakeLease: which of several hubs runs on a lake, as a row in PostgreSQL says, in the database's own time.

The lease says only when another hub may take over. What keeps a late holder from writing is the fence in the lake.
"""

from typing import Final

from gpuwaste.store.lake_catalog import LakeCatalog
from gpuwaste.store.lake_extensions import quoted

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
