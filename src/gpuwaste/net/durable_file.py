"""A small SQLite file that loses nothing: the outboxes of agent and advisor, and the journal of the actor.

WAL mode with synchronous FULL: a transaction's data is on disk when it returns. One process holds the file; a corrupt
file is renamed, and a new one created.
"""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from gpuwaste.core import log_event
from gpuwaste.core.errors import StoreError
from gpuwaste.core.log_event import LogEvent

_VACUUM_PAGES: Final = 1024  # free pages (4 KiB each) from which on the file is shrunk
_CORRUPT_CODES: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_CORRUPT: Final = log_event.error(
    "outbox-corrupt: outbox {path} is corrupt ({reason}), kept as {kept}; its unsent rows are not sent",
    "Often a power cut or a full disk. GPU time in those rows is reported as unknown. Keep the file for a bug report.",
)
_NOT_SHRUNK: Final = log_event.warning(
    "outbox-not-shrunk: cannot shrink outbox {path}: {error}", "Space is not freed now; nothing is lost."
)
_T = TypeVar("_T")


class DurableFile:
    """One open file; threads share it through a lock.

    Only one process can hold it. A corrupt file is renamed to `NAME.corrupt-N`, logged once, and a new one is created;
    `set_aside` lists it. A subclass names its `migrations`, the steps from one PRAGMA user_version to the next, and the
    `owner`, for the error when a second process holds the file. One that is not an outbox names the log event for when
    it is `corrupt` (path, reason, kept), and the consequence of a full disk.
    """

    migrations: ClassVar[tuple[str, ...]] = ()
    owner: ClassVar[str] = "process"
    corrupt: ClassVar[LogEvent] = _CORRUPT
    when_full: ClassVar[str] = "; rows wait in memory"

    def __init__(self, path: Path) -> None:
        """Open or create the file, so that problems are reported at the start. Raises StoreError."""
        self.path = path
        self.set_aside: list[Path] = []
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._run(lambda _: None)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _count(self, sql: str) -> int:
        return int(self._run(lambda connection: connection.execute(sql).fetchone())[0])

    def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `work` in one transaction; a corrupt file is renamed, and `work` run on a new one. Raises StoreError."""
        with self._lock:
            for last in (False, True):
                try:
                    return self._transaction(work)
                except sqlite3.Error as error:
                    if _code(error) not in _CORRUPT_CODES or last:
                        raise StoreError(f"{self.path}: {self._advice(error)}") from error
                    self._set_aside(str(error))
            raise AssertionError  # the loop returns or raises

    def _transaction(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.touch(mode=0o600)
            except OSError as error:
                raise StoreError(f"{self.path}: cannot be written: {error.strerror}") from error
            connection = sqlite3.connect(self.path, timeout=0.5, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # Exclusive before the first read: no other process gets access, and WAL needs no shared memory file.
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        if self.path.stat().st_size == 0:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # possible before the first page only
        # A small WAL: the default of 1000 pages would be most of what the agent stores in a day.
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=64"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            error = sqlite3.DatabaseError(found)
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        at = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if at > len(self.migrations):
            raise StoreError(
                f"{self.path}: its schema {at} is newer than this version's ({len(self.migrations)}): update gpuwaste"
            )
        for number, script in enumerate(self.migrations[at:], start=at + 1):
            connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version={number}; COMMIT;")

    def _set_aside(self, reason: str) -> None:
        self.close()
        number = 1
        while (target := self.path.with_name(f"{self.path.name}.corrupt-{number}")).exists():
            number += 1
        try:
            self.path.rename(target)
            for suffix in ("-wal", "-shm"):
                side = self.path.with_name(self.path.name + suffix)
                if side.exists():
                    side.rename(target.with_name(target.name + suffix))
        except OSError as error:
            raise StoreError(f"{self.path}: corrupt, and cannot be renamed: {error.strerror}") from error
        self.set_aside.append(target)
        self.corrupt.log(path=self.path, reason=reason, kept=target)

    def _shrink(self) -> None:
        with self._lock:
            try:
                connection = self._opened()
                if connection.execute("PRAGMA freelist_count").fetchone()[0] > _VACUUM_PAGES:
                    connection.executescript("PRAGMA incremental_vacuum")  # execute would free only one page
            except sqlite3.Error as error:
                _NOT_SHRUNK.log(path=self.path, error=error)

    def _advice(self, error: sqlite3.Error) -> str:
        advice = {
            sqlite3.SQLITE_FULL: f"the disk is full: free space{self.when_full}",
            sqlite3.SQLITE_BUSY: f"held by another process: is another {self.owner} running with this state_dir?",
            sqlite3.SQLITE_READONLY: "read-only: check its owner and its file system",
            sqlite3.SQLITE_CANTOPEN: f"cannot be opened: its directory must exist and belong to the {self.owner}",
            sqlite3.SQLITE_IOERR: "the disk reports an error: see the kernel's log",
        }
        return advice.get(_code(error), str(error))


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the basic code; the rest refines it
