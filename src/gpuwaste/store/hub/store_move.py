"""StoreMove: makes one store equal to another, part by part, and opens the lakes that it copies from or to.

An interrupted move therefore continues where it stopped, and a second pass copies only what has changed since.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Final

from gpuwaste.core.errors import StoreError
from gpuwaste.store.database import Database, schema_number, schema_tables
from gpuwaste.store.hub.inbox import has_inbox, waiting
from gpuwaste.store.hub.table_parts import PartedTable, Side
from gpuwaste.store.lake_database import LakeDatabase, MoveState

Progress = Callable[[str, int, int], None]
"""Called with a table, the rows that are done, and the rows of all tables."""
_OTHER: Final[dict[Side, Side]] = {"file": "lake", "lake": "file"}
_EMPTY_ONE: Final = "name an empty database and an empty directory in [hub] lake_catalog and lake_data"
_MERGE: Final = "start one hub, wait until its gpuwaste_hub_inbox_batches is 0, stop it and move again"
_ORPHANS: Final = "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)"
_DATA_FILES: Final = "SELECT count(*) FROM glob(?)"


@dataclass(frozen=True, slots=True)
class MoveResult:
    """The rows of the store, those of them that were copied this time, and the number of tables."""

    rows: int
    copied: int
    tables: int


class StoreMove:
    """A move in a database that has both stores attached, as `file` and as `lake`."""

    def __init__(self, db: Database, target: Side, progress: Progress) -> None:
        self._db = db
        self._target: Side = target
        self._progress = progress
        self._tables = [PartedTable(name, _OTHER[target], target) for name in moved_tables()]
        self._done = self._total = self._copied = 0

    def copy(self, *, at_rest: bool) -> MoveResult:
        """Copy what differs. Raises StoreError.

        `at_rest` means that the source has no writers: then each count and each sum is equal at the end, or it raises
        StoreError.
        """
        try:
            self._total = sum(table.rows(self._db) for table in self._tables)
            for table in self._tables:
                self._copy_table(table, at_rest)
        except StoreError as error:
            raise StoreError(
                f"{error}: the move stopped, the old store is unchanged: run it again to continue"
            ) from error
        return MoveResult(self._done, self._copied, len(self._tables))

    def _copy_table(self, table: PartedTable, at_rest: bool) -> None:
        source, target = table.source_sums(self._db), table.target_sums(self._db)
        differing = {part for part in {*source, *target} if source.get(part) != target.get(part)}
        self._remove(table, differing & {*target})
        for part in sorted(source):
            if part in differing:
                with self._writing():
                    table.copy(self._db, part)
                self._copied += source[part].rows
                if at_rest:
                    table.check(self._db, part, source[part])
            self._done += source[part].rows
            self._progress(table.name, self._done, self._total)

    def _remove(self, table: PartedTable, stale: set[int]) -> None:
        """Remove parts of the target, all before copying: a row whose time has changed is in another part now."""
        if stale:
            with self._writing():
                for part in sorted(stale):
                    table.remove(self._db, part)

    def _writing(self) -> AbstractContextManager[None]:
        # A transaction writes to one store, and only a lake has a fence.
        return self._db.writing() if self._target == "lake" else self._db.transaction()


class FilledLake(LakeDatabase):
    """A lake that is being filled: new, or left by an interrupted move. No hub uses it until `finish`."""

    created_as: ClassVar[MoveState | None] = "filling"

    def finish(self) -> None:
        """Release it to the hub. Raises StoreError."""
        with self.writing():
            self.forget_move()

    def _check_use(self) -> None:
        if self.version > 0 and self.move_state != "filling":
            raise StoreError(f"{self.where}: is not empty: {_EMPTY_ONE}")

    def _migrate(self) -> None:
        at = self.version
        if at == 0:
            data = self.where.removeprefix("lake ")
            if self.execute(_DATA_FILES, [f"{_literal(data)}/**"]).fetchall() != [(0,)]:
                raise StoreError(f"{data}: is not empty: {_EMPTY_ONE}")
        super()._migrate()
        if at > 0:
            self.execute(_ORPHANS)  # of an interrupted move: no catalog names them


class SourceLake(LakeDatabase):
    """A lake that is moved to a file; opening it revokes the write access of the last hub."""

    def _check_use(self) -> None:
        if self.version == 0:
            raise StoreError(f"{self.where}: the database has no store of a hub: check [hub] lake_catalog")
        if self.move_state == "filling":
            super()._check_use()

    def _take_over(self) -> None:
        super()._take_over()
        left = waiting(self).batches if has_inbox(self) else 0
        if left:
            raise StoreError(f"{self.where}: {left} batches are not merged yet: {_MERGE}")


class WatchedLake(SourceLake):
    """The same while its hub runs: nothing in it is changed."""

    def _migrate(self) -> None:
        at, known = self.version, schema_number(self.schema)
        if at != known:
            raise StoreError(f"{self.where}: has schema {at}, this version {known}: update the hub first")

    def _take_over(self) -> None:
        """Do nothing: the hub keeps the fence."""


def moved_tables() -> tuple[str, ...]:
    """Return the tables that a move copies: all of the hub's schema except its number."""
    return tuple(name for name in schema_tables("hub") if name != "schema_version")


def _literal(path: str) -> str:
    """Return a path escaped for a pattern."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
