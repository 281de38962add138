"""LakeStore: the hub's store in a lake instead of a file, for one hub at a time."""

from pathlib import Path
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.inbox import HubLake
from gpuwaste.store.lake_database import LakeDatabase, LakeLocation

NOT_COPIED: Final = (
    "the hub's store is a lake: back it up with pg_dump (lake_catalog), then rsync (lake_data), restore it with rsync,"
    " then pg_restore: see docs/how-to/lake.md"
)
_SIZE: Final = (
    "SELECT coalesce(sum(file_size_bytes + delete_file_size_bytes), 0)::BIGINT FROM ducklake_table_info('lake')"
)
_FAILED: Final = log_event.warning(
    "lake-not-compacted: cannot merge the files of the lake, retry later: {error}",
    "PostgreSQL or the directory of the lake refuses. Reports are correct meanwhile; many small files make them slow.",
)


class LakeStore(HubStore):
    """What the hub keeps, in a lake. Rows are never packed: a lake's files are written anew by their merging."""

    packs = False
    has_inbox = True
    not_copied = NOT_COPIED
    upkeep_s = 600.0

    @classmethod
    def open_lake(cls, location: LakeLocation, clock: Clock, scratch: Path, memory_mb: int = 0) -> Self:
        """Open or create the lake; DuckDB spills into the directory `scratch`. Raises StoreError."""
        return cls(HubLake.open_lake(location, "hub", lake_options(scratch, memory_mb)), clock)

    def copy_to(self, path: Path) -> tuple[dict[str, int], int]:
        """Raise StoreError: a lake is saved by other means."""
        raise StoreError(f"{path.name}: {NOT_COPIED}")

    def size_b(self) -> int:
        """Return the bytes of the lake's files."""
        with self.reader() as db:
            return int(db.execute(_SIZE).fetchall()[0][0])

    def checkpoint(self) -> None:
        """Merge small files and remove those of old snapshots; nobody writes meanwhile."""
        with self.locked(), self.reader() as db:
            try:
                db.execute("CHECKPOINT lake")
            except StoreError as error:
                _FAILED.log(error=error)


class LakeReader(LakeStore):
    """The lake of another hub, to read: what that hub has committed is there at once, and `writing` is refused."""

    alone = False

    @classmethod
    def open_lake(cls, location: LakeLocation, clock: Clock, scratch: Path, memory_mb: int = 0) -> Self:
        """Open the lake; DuckDB spills into the directory `scratch`. Raises StoreError."""
        return cls(LakeDatabase.open_reader(location, "hub", lake_options(scratch, memory_mb)), clock)

    def check_version(self) -> None:
        """Raise StoreError where the lake cannot be read, or has another version's schema by now."""
        with self.reader() as db:
            db.check_version()


def lake_options(scratch: Path, memory_mb: int = 0) -> dict[str, str]:
    """Return DuckDB's settings for a lake, which spills into `scratch`; 0 megabytes: DuckDB's own limit."""
    return {"threads": "2", "temp_directory": str(scratch)} | ({"memory_limit": f"{memory_mb}MB"} if memory_mb else {})
