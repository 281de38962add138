"""StoreMove: makes one store equal to another, part by part; what is equal already is not copied again.

So a move that was interrupted goes on where it stopped, and a second pass copies only what has changed since.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import StoreError
from gpuwaste.store.database import Database
from gpuwaste.store.hub.move_lakes import moved_tables
from gpuwaste.store.hub.table_parts import PartedTable, Side

Progress = Callable[[str, int, int], None]
"""Is called with a table, the rows that are done, and the rows of all tables."""
_OTHER: Final[dict[Side, Side]] = {"file": "lake", "lake": "file"}


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

        `at_rest` says that nobody writes to the source: then each count and each sum is equal at the end, or it raises
        StoreError.
        """
        try:
            self._total = sum(table.rows(self._db) for table in self._tables)
            for table in self._tables:
                self._copy_table(table, at_rest)
        except StoreError as error:
            raise StoreError(f"{error}: the move stopped, the old store is unchanged: run it again to go on") from error
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
        """Remove parts of the target, all of them first: a row whose time has changed is in another part now."""
        if stale:
            with self._writing():
                for part in sorted(stale):
                    table.remove(self._db, part)

    def _writing(self) -> AbstractContextManager[None]:
        # A transaction writes to one store, and only a lake has a fence.
        return self._db.writing() if self._target == "lake" else self._db.transaction()
