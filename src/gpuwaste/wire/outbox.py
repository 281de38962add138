"""The durable outbox: rows of hours from the moment they are put until the hub has acknowledged them.

SQLite in WAL mode with synchronous FULL, a file of its own (docs/decisions/0004). Nothing that is not acknowledged is
ever dropped: while the hub is away the file grows by about 1 KB per GPU, job and hour (a node of eight GPUs with
hour-long jobs: 200 rows, 0.2 MB a day).
"""

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.hour import AllocationHour, hour_from_wire
from gpuwaste.wire.batch import MAX_BATCH_BYTES, Batch, BatchRow, encode_hour
from gpuwaste.wire.outbox_schema import KEY, MIGRATIONS

MAX_BATCH_ROWS: Final = 5000
_VACUUM_PAGES: Final = 1024  # free pages (4 KiB each) from which the file is made smaller
_CORRUPT_CODES: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_MATCH: Final = " AND ".join(f"{column} = ?" for column in KEY)
_COLUMNS: Final = ", ".join(KEY)
_PUT: Final = (
    f"INSERT INTO hours ({_COLUMNS}, seq, final, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608 constants
    f"ON CONFLICT ({_COLUMNS}) DO UPDATE SET seq = excluded.seq, final = excluded.final, payload = excluded.payload "
    "WHERE excluded.seq > hours.seq"
)
_UNSENT: Final = (
    f"SELECT {_COLUMNS}, seq, final, payload FROM hours WHERE seq > acked_seq "  # noqa: S608 constants
    f"ORDER BY hour_utc, {_COLUMNS} LIMIT ?"
)
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class Outbox:
    """One open outbox. The sampling thread puts and the shipper takes: a lock keeps them apart.

    The file is held by one process: a second agent on the node is refused. A corrupt file is set aside as
    `NAME.corrupt-N`, said once in the log, and a new one is begun; `set_aside` names it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set_aside: list[Path] = []
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self.depth()  # opens the file, so that what is wrong with it is said at the start

    def put(self, rows: Sequence[AllocationHour]) -> int:
        """Store rows durably, all or none; return how many were news (a seq above the one kept of that key).

        Raises StoreError (disk full, disk error): nothing was stored. The caller then keeps the rows in memory, the
        newest of each key, and puts them again with the next ones: putting twice is harmless.
        """
        encoded = [encode_hour(row) for row in rows]
        values = [(*row.key, row.seq, row.final, row.line) for row in encoded]

        def store(connection: sqlite3.Connection) -> int:
            before = connection.total_changes
            connection.executemany(_PUT, values)
            return connection.total_changes - before

        return self._run(store) if values else 0

    def open_rows(self) -> list[AllocationHour]:
        """Return the rows that are not final, oldest first, from which the agent goes on after a restart."""
        sql = f"SELECT payload FROM hours WHERE NOT final ORDER BY hour_utc, {_COLUMNS}"  # noqa: S608 constants
        payloads = self._run(lambda connection: connection.execute(sql).fetchall())
        return [hour for (payload,) in payloads if (hour := self._decoded(payload)) is not None]

    def take(self, max_bytes: int = MAX_BATCH_BYTES, max_rows: int = MAX_BATCH_ROWS) -> Batch | None:
        """Return the oldest rows whose newest version is not acknowledged, in a new batch, or None where there is none.

        They stay here until `ack`. A row that is larger than `max_bytes` alone is a batch of its own.
        """
        rows: list[BatchRow] = []

        def collect(connection: sqlite3.Connection) -> None:
            rows.clear()
            size = 0
            for row in connection.execute(_UNSENT, (max_rows,)):
                size += len(row[8]) + 1
                if rows and size > max_bytes:
                    break
                rows.append(BatchRow(row[:6], row[6], bool(row[7]), row[8]))

        self._run(collect)
        return Batch(tuple(rows)) if rows else None

    def ack(self, batch: Batch, rejected: Mapping[int, str] | None = None) -> list[tuple[BatchRow, str]]:
        """Note that the hub has the batch: a row that is final goes, any other stays with its acknowledged seq.

        `rejected` maps line numbers (the first row is line 2) to reasons: those rows are kept in the table `rejected`.
        Returns the rejected rows that were not there before, with their reasons. Raises StoreError: then the rows are
        sent again, which is harmless.
        """
        refused = [(batch.rows[line - 2], reason) for line, reason in (rejected or {}).items()]

        def settle(connection: sqlite3.Connection) -> list[tuple[BatchRow, str]]:
            new = [(row, reason) for row, reason in refused if _reject(connection, row, reason)]
            keys = [(*row.key, row.seq) for row in batch.rows]
            connection.executemany(f"DELETE FROM hours WHERE {_MATCH} AND seq = ? AND final", keys)  # noqa: S608 constants
            connection.executemany(
                f"UPDATE hours SET acked_seq = max(acked_seq, ?) WHERE {_MATCH}",  # noqa: S608 constants
                [(row.seq, *row.key) for row in batch.rows],
            )
            return new

        new = self._run(settle)
        self._shrink()
        return new

    def depth(self) -> int:
        """Return the number of rows whose newest version is not acknowledged."""
        return self._count("SELECT count(*) FROM hours WHERE seq > acked_seq")

    def rejected_count(self) -> int:
        """Return the number of rows that the hub has refused."""
        return self._count("SELECT count(*) FROM rejected")

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _count(self, sql: str) -> int:
        return int(self._run(lambda connection: connection.execute(sql).fetchone())[0])

    def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do `work` in one transaction; on a corrupt file set it aside and do it on a new one. Raises StoreError."""
        with self._lock:
            for last in (False, True):
                try:
                    return self._transaction(work)
                except sqlite3.Error as error:
                    if _code(error) not in _CORRUPT_CODES or last:
                        raise StoreError(f"{self.path}: {_advice(error)}") from error
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
        # Exclusive before the first read: no other process gets in, and WAL needs no shared memory file.
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        if self.path.stat().st_size == 0:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # possible before the first page only
        # A small WAL: the default of 1000 pages would be most of what the agent keeps of a day.
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=64"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            error = sqlite3.DatabaseError(found)
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        at = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if at > len(MIGRATIONS):
            raise StoreError(
                f"{self.path}: its schema {at} is newer than this version understands ({len(MIGRATIONS)}): "
                "update gpuwaste"
            )
        for number, script in enumerate(MIGRATIONS[at:], start=at + 1):
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
            raise StoreError(f"{self.path}: corrupt, and cannot be set aside: {error.strerror}") from error
        self.set_aside.append(target)
        _log.error(
            "outbox %s is corrupt (%s): kept as %s; rows in it that were not sent are unknown",
            self.path,
            reason,
            target,
        )

    def _decoded(self, payload: bytes) -> AllocationHour | None:
        try:
            return hour_from_wire(json.loads(payload))
        except (ParseError, ValueError) as error:
            _log.error("outbox %s: a kept row cannot be read and stays as it is: %s", self.path, error)
            return None

    def _shrink(self) -> None:
        with self._lock:
            try:
                connection = self._opened()
                if connection.execute("PRAGMA freelist_count").fetchone()[0] > _VACUUM_PAGES:
                    connection.executescript("PRAGMA incremental_vacuum")  # execute would free one page
            except sqlite3.Error as error:
                _log.warning("outbox %s cannot be made smaller: %s", self.path, error)


def _reject(connection: sqlite3.Connection, row: BatchRow, reason: str) -> bool:
    """Keep a refused row aside; true where no version of it was there."""
    known = connection.execute(f"SELECT 1 FROM rejected WHERE {_MATCH}", row.key).fetchone()  # noqa: S608 constants
    connection.execute(
        "INSERT OR REPLACE INTO rejected VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*row.key, row.seq, reason, int(time.time()), row.line),
    )
    return known is None


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte; the rest refines it


def _advice(error: sqlite3.Error) -> str:
    advice = {
        sqlite3.SQLITE_FULL: "the disk is full: free space; rows wait in memory",
        sqlite3.SQLITE_BUSY: "held by another process: is another agent running with this state_dir?",
        sqlite3.SQLITE_READONLY: "read-only: check its owner and its file system",
        sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that its directory exists and belongs to the agent",
        sqlite3.SQLITE_IOERR: "the disk reports an error: see the kernel's log",
    }
    return advice.get(_code(error), str(error))
