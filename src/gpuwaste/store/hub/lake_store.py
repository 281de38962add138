"""LakeStore: the hub's store in a lake instead of a file, for one hub at a time."""

from pathlib import Path
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.store.database import Database
from gpuwaste.store.hub.data_inventory import INVENTORY, Text
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
# Deleted or changed rows are in the old files until these are rewritten, and no snapshot needs them.
_FORGET: Final = (
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "SELECT count(*) FROM ducklake_expire_snapshots('lake', older_than => now())",
    "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)",
)
_PERSONAL: Final = (Text.PERSON, Text.ACCOUNT, Text.TYPED, Text.MENTION)
# DuckLake's statistics of the texts of each column, or of the items of a list: it never narrows them itself.
_BOUNDS: Final = """
SELECT t.table_name, coalesce(p.column_name, c.column_name), s.table_id, s.column_id, p.column_name IS NOT NULL,
    s.min_value, s.max_value
FROM __ducklake_metadata_lake.ducklake_table_column_stats s
JOIN __ducklake_metadata_lake.ducklake_table t ON t.table_id = s.table_id AND t.end_snapshot IS NULL
JOIN __ducklake_metadata_lake.ducklake_column c
    ON c.table_id = s.table_id AND c.column_id = s.column_id AND c.end_snapshot IS NULL AND c.column_type = 'varchar'
LEFT JOIN __ducklake_metadata_lake.ducklake_column p
    ON p.table_id = c.table_id AND p.column_id = c.parent_column AND p.end_snapshot IS NULL
WHERE s.min_value IS NOT NULL OR s.max_value IS NOT NULL
"""
_SET_BOUNDS: Final = (
    "UPDATE __ducklake_metadata_lake.ducklake_table_column_stats SET min_value = ?, max_value = ?"
    " WHERE table_id = ? AND column_id = ?"
)
_FAILED: Final = log_event.warning(
    "lake-not-compacted: cannot merge the files of the lake, retry later: {error}",
    "PostgreSQL or the lake's directory cannot be written. Reports are correct, but slow with many small files.",
)


class LakeStore(HubStore):
    """The hub's data in a lake. Rows are never packed: merging rewrites a lake's files."""

    packs = False
    has_inbox = True
    not_copied = NOT_COPIED
    upkeep_s = 600.0

    @classmethod
    def open_lake(cls, location: LakeLocation, clock: Clock, scratch: Path, memory_mb: int = 0) -> Self:
        """Open or create the lake; DuckDB spills into the directory `scratch`. Raises StoreError."""
        return cls(HubLake.open_lake(location, "hub", lake_options(scratch, memory_mb)), clock)

    def copy_to(self, path: Path) -> tuple[dict[str, int], int]:
        """Raise StoreError: a lake is backed up by other means."""
        raise StoreError(f"{path.name}: {NOT_COPIED}")

    def size_b(self) -> int:
        """Return the bytes of the lake's files."""
        with self.reader() as db:
            return int(db.execute(_SIZE).fetchall()[0][0])

    def checkpoint(self) -> None:
        """Merge small files and remove those of old snapshots; no other writer meanwhile."""
        with self.locked(), self.reader() as db:
            try:
                db.execute("CHECKPOINT lake")
            except StoreError as error:
                _FAILED.log(error=error)

    def forget_past(self) -> None:
        """Remove all snapshots except the last, files that only they need, and the catalog's statistics of their texts.

        Readers of an older snapshot get an error. Raises StoreError.
        """
        with self.locked(), self.reader() as db:
            for statement in _FORGET:
                db.execute(statement).fetchall()
            for known in db.execute(_BOUNDS).fetchall():
                _narrow(db, *known)


class LakeReader(LakeStore):
    """The lake of another hub, read-only: that hub's commits are visible at once, and `writing` fails."""

    alone = False

    @classmethod
    def open_lake(cls, location: LakeLocation, clock: Clock, scratch: Path, memory_mb: int = 0) -> Self:
        """Open the lake; DuckDB spills into the directory `scratch`. Raises StoreError."""
        return cls(LakeDatabase.open_reader(location, "hub", lake_options(scratch, memory_mb)), clock)

    def check_version(self) -> None:
        """Raise StoreError where the lake cannot be read, or now has another version's schema."""
        with self.reader() as db:
            db.check_version()


def lake_options(scratch: Path, memory_mb: int = 0) -> dict[str, str]:
    """Return DuckDB's settings for a lake, which spills into `scratch`; 0 megabytes: DuckDB's own limit."""
    return {"threads": "2", "temp_directory": str(scratch)} | ({"memory_limit": f"{memory_mb}MB"} if memory_mb else {})


def _narrow(  # noqa: PLR0917 a row of _BOUNDS
    db: Database,
    table: str,
    column: str,
    table_id: int,
    column_id: int,
    is_list: bool,
    least: str,
    greatest: str,
) -> None:
    """Set the smallest and the greatest text of a column in the catalog, where they are no longer those of the rows."""
    stored = INVENTORY.get(table)
    if stored is None or stored.texts.get(column) not in _PERSONAL:
        return
    text = f'unnest("{column}")' if is_list else f'"{column}"'
    found = db.execute(f'SELECT min(text), max(text) FROM (SELECT {text} AS text FROM "{table}")').fetchall()[0]  # noqa: S608 names of ours
    if found != (least, greatest):
        db.execute(_SET_BOUNDS, [*found, table_id, column_id]).fetchall()
