"""A lake as a move opens it: to fill it, to copy from it while its hub runs, and for the last part."""

from typing import ClassVar, Final

from gpuwaste.core.errors import StoreError
from gpuwaste.store.database import schema_number
from gpuwaste.store.hub.inbox import has_inbox, waiting
from gpuwaste.store.lake_database import LakeDatabase, MoveState
from gpuwaste.store.tables import schema_tables

_EMPTY_ONE: Final = "name an empty database and an empty directory in [hub] lake_catalog and lake_data"
_MERGE: Final = "start one hub, wait until its gpuwaste_hub_inbox_batches is 0, stop it and move again"
_ORPHANS: Final = "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)"
_DATA_FILES: Final = "SELECT count(*) FROM glob(?)"


class FilledLake(LakeDatabase):
    """A lake that is filled: new, or left by a move that was interrupted. No hub uses it until `finish`."""

    created_as: ClassVar[MoveState | None] = "filling"

    def finish(self) -> None:
        """Give it to the hub. Raises StoreError."""
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
    """A lake that is moved to a file; opening it ends the rights of the hub that wrote last."""

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
        """Leave the fence to the hub."""


def moved_tables() -> tuple[str, ...]:
    """Return the tables that a move copies: all of the hub's schema but its number."""
    return tuple(name for name in schema_tables("hub") if name != "schema_version")


def _literal(path: str) -> str:
    """Return a path for a pattern in which it means itself."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
