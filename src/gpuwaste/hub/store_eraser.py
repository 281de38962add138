"""Erases a user from the hub's store while no hub runs: the rows, then every older copy of them that the store keeps.

The rows change in one transaction. Older copies remain in the file, or in the lake's files, so that a file is
rewritten, and a lake drops its old snapshots. Each call does this, so that a second one completes an interrupted one.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError, UsageError
from gpuwaste.core.files import sync_directory
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.hub.lake_command import lake_without_hubs
from gpuwaste.hub.store_choice import lake_location, open_store
from gpuwaste.jobs.importers.page_files import PageFiles
from gpuwaste.store.hub.backup_restore import SAVED_HISTORY
from gpuwaste.store.hub.erasure import ErasedTable, Erasure, NameLeft, PersonName
from gpuwaste.store.hub.hub_store import STORE_NAME, HubStore
from gpuwaste.store.hub.inbox import turn, waiting
from gpuwaste.store.hub.lake_store import LakeStore
from gpuwaste.store.hub.store_file import nobody_has

_COMMAND: Final = "gpuwaste hub erase"
_UNFINISHED: Final = STORE_NAME + ".erasing"
_COPIES: Final = (STORE_NAME + ".before-*", STORE_NAME + ".moving*", "move.unfinished", "backup.unfinished")
_SIMULATIONS: Final = "simulations"
_ROOM: Final = 1.1  # of the store's size, for the file that is rewritten
_AFTER_ALL_US: Final = 1 << 62  # an instant after that of every batch
_TURNS: Final = 6  # a table that was put aside is dropped, and the newer one as well


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What was erased, or would be.

    `pages` are raw pages of imported history that name the user; `again` are the user's runs that the next read of
    accounting may bring back; `left` has names that were not changed, `copies` files and directories that were not.
    """

    tables: Sequence[ErasedTable]
    pages: int
    left: Sequence[NameLeft]
    again: int
    copies: Sequence[str]


class _RolledBackError(Exception):
    """Ends a transaction whose changes are only counted."""


class StoreEraser:
    """The store of one hub, which is stopped."""

    def __init__(self, hub: HubConfig, clock: Clock) -> None:
        self._hub = hub
        self._clock = clock
        self._state_dir = Path(hub.state_dir)
        self._path = self._state_dir / STORE_NAME

    def erase(self, user: str, *, only_count: bool) -> ErasureResult:
        """Erase a user, or with `only_count` return what that would change. Raises GpuwasteError."""
        person = PersonName(user)
        try:
            with self._opened() as store:
                result = self._erase_rows(store, user, person, only_count=only_count)
                if only_count:
                    return result
                shutil.rmtree(self._state_dir / SAVED_HISTORY, ignore_errors=True)  # the hub creates it again
                if isinstance(store, LakeStore):
                    store.forget_past()
                    return result
                copy = self._copied(store)
            self._put(copy)
        except OSError as error:
            raise StoreError(f"{self._state_dir}: cannot be used: {error.strerror or error}") from error
        return result

    @contextmanager
    def _opened(self) -> Iterator[HubStore]:
        """Yield the store, which no hub uses meanwhile. Raises GpuwasteError."""
        lake = lake_location(self._hub)
        if lake is None:
            if not self._path.is_file():
                raise UsageError(f"{self._path}: does not exist: there is no store to erase from")
            with nobody_has(self._path):
                pass
            with closing(open_store(self._hub, self._clock)) as store:
                yield store
            return
        with lake_without_hubs(lake, _COMMAND) as holder:
            if holder:
                raise StoreError(f"lake {lake.data}: a hub runs on it: {holder}: stop all hubs of the lake first")
            with closing(open_store(self._hub, self._clock)) as store:
                self._empty_inbox(store)
                yield store

    def _erase_rows(self, store: HubStore, user: str, person: PersonName, *, only_count: bool) -> ErasureResult:
        tables: Sequence[ErasedTable] = ()
        left: Sequence[NameLeft] = ()
        again = 0
        with suppress(_RolledBackError), store.writing() as db:
            known = {"user": person.name, "overlap_s": self._hub.sacct_overlap_s}
            again = int(db.rows("erased_open", known)[0]["runs"])
            erasure = Erasure(db, user)
            tables, left = erasure.erase(), erasure.left()
            if only_count:
                raise _RolledBackError
        pages = PageFiles(self._path).remove_named(person.is_in, only_count=only_count)
        return ErasureResult(tables, pages, left, again, self._copies(person))

    @staticmethod
    def _empty_inbox(store: HubStore) -> None:
        """Drop the merged batches. Raises StoreError where some are not merged: they may name the user."""
        with store.reader() as db:
            batches = waiting(db).batches
        if batches:
            raise StoreError(
                f"{batches} batches in the lake's inbox are not merged yet and may name the user: start one hub, wait"
                " until its gpuwaste_hub_inbox_batches is 0, stop all hubs and erase again"
            )
        for _ in range(_TURNS):
            turn(store, _AFTER_ALL_US, rows=1)

    def _copied(self, store: HubStore) -> Path:
        """Write the store to a new file without the unused parts of the old one."""
        new = self._state_dir / _UNFINISHED
        free, needed = shutil.disk_usage(self._state_dir).free, int(store.size_b() * _ROOM)
        new.unlink(missing_ok=True)
        if free < needed:
            raise StoreError(
                f"the rows are erased, but freed parts of {self._path} still contain the old ones: rewriting it"
                f" needs {needed >> 20} MB and {self._state_dir} has {free >> 20} MB free: free space and erase again"
            )
        rows, _ = store.copy_to(new)
        if rows != store.counts():
            raise StoreError(f"{new}: the copy is incomplete, and the store is unchanged: erase again")
        with new.open("rb") as file:
            os.fsync(file.fileno())
        return new

    def _put(self, new: Path) -> None:
        """Replace the old file by the new one. Raises StoreError where a hub was started meanwhile."""
        with nobody_has(self._path):
            if self._path.with_name(STORE_NAME + ".wal").exists():
                raise StoreError(f"{self._path}: was changed meanwhile: stop the hub and erase again")
            new.replace(self._path)
            sync_directory(self._state_dir)

    def _copies(self, person: PersonName) -> list[str]:
        """Return the other files in the state directory that may name the user."""
        found = [path for pattern in _COPIES for path in self._state_dir.glob(pattern)]
        for path in (self._state_dir / _SIMULATIONS).glob("*.json"):
            with suppress(OSError):
                found += [path] if person.is_in(path.read_text(encoding="utf-8", errors="replace")) else []
        return sorted(map(str, found))
