"""HubStore: the hub's data, accessed only through named queries.

One writer at a time, whatever the thread; readers take their own cursor. A method that writes has committed, with the
commit on disk, when it returns.
"""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Literal, Self

from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.underuse import UNDER_USE
from gpuwaste.store.database import MEMORY, Database
from gpuwaste.store.hub.json_rows import to_json
from gpuwaste.store.hub.store_changes import ChangedEnds, Changes, Run, Touched

_LOG_B: Final = 16 << 20  # DuckDB's own limit
STORE_NAME: Final = "hub.duckdb"  # below [hub] state_dir


@dataclass(frozen=True, slots=True)
class Aside:
    """A row that could not be read: its line, the reason, and the beginning of its text."""

    line: int
    reason: str
    raw: str


class HubStore:
    """An open store, its writer, and the changes by commits; each subject reads and writes its tables through it."""

    packs: ClassVar[bool] = True
    """Whether rows are sorted by user (ledger/rollup.py)."""
    not_copied: ClassVar[str] = ""
    """Why `copy_to` cannot copy this kind of store, and what to do instead."""
    upkeep_s: ClassVar[float] = 3600.0
    """How often old hours are summed up and `checkpoint` is called."""
    has_inbox: ClassVar[bool] = False
    """Whether hubs that stand by may store batches for the hub that writes (inbox.py)."""
    alone: ClassVar[bool] = True
    """Whether every change is made through this object, and so recorded in `touched` and `changed_ends`."""

    def __init__(self, database: Database, clock: Clock, path: Path | None = None) -> None:
        self.under_use = UNDER_USE  # the rule by which the use of GPUs is counted in every query
        self._root = database
        self._writer = database.cursor()
        self._clock = clock
        self._path = path
        self._write_lock = threading.Lock()
        self._cursor_lock = threading.Lock()
        self._copying: Database | None = None
        self._changes: Changes | None = None
        self.touched = Touched()
        self.changed_ends = ChangedEnds()

    @classmethod
    def open(cls, path: Path | Literal[":memory:"], clock: Clock, memory_mb: int = 0) -> Self:
        """Open or create the store; `memory_mb` limits DuckDB's memory, 0 keeps DuckDB's own limit.

        Raises StoreError as `Database.open` does.
        """
        if path == MEMORY:
            return cls(Database.open(MEMORY, "hub"), clock)
        path = Path(path)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path.parent}: cannot be created: {error.strerror}") from error
        # Two threads make a year's report a quarter faster, and ingest no slower (bench.report, bench.ingest).
        options = {"threads": "2"} | ({"memory_limit": f"{memory_mb}MB"} if memory_mb else {})
        return cls(Database.open(path, "hub", options), clock, path)

    @property
    def given_up(self) -> str:
        """Why DuckDB rejects the store until it is opened again (Database.given_up); empty where it does not."""
        return self._root.given_up

    def close(self) -> None:
        """Close the file, after any write in progress."""
        with self._write_lock:
            self._writer.close()
            self._root.close()

    def now(self) -> int:
        """Return UTC seconds, by the clock with which the store was opened."""
        return self._clock.utc_s()

    @contextmanager
    def reader(self) -> Iterator[Database]:
        """Provide a cursor to the calling thread."""
        with self._cursor_lock:
            cursor = self._root.cursor()
        with contextlib.closing(cursor):
            yield cursor

    def quarantine(self, source: str, rows: Sequence[Aside]) -> int:
        """Store bad rows in quarantine; return how many are new there."""
        if not rows:
            return 0
        with self.writing() as db:
            return put_aside(db, source, rows, self.now())

    def mark(self, key: str) -> int | None:
        """Return an importer's mark."""
        with self.reader() as db:
            return mark_of(db, key)

    def set_mark(self, key: str, value: int) -> None:
        """Store an importer's mark."""
        with self.writing() as db:
            db.run("mark_set", {"key": key, "value": value}).fetchall()

    def counts(self) -> dict[str, int]:
        """Return the rows of each table, and `last_event`."""
        with self.reader() as db:
            return {name: int(value) for name, value in db.rows("counts")[0].items()}

    def copy_to(self, path: Path) -> tuple[dict[str, int], int]:
        """Write the store as of this instant to a new file, while others write; return its counts and its schema.

        Raises StoreError, also where `stop_copy` interrupted it.
        """
        with self.reader() as db:
            own = str(db.execute("SELECT current_database()").fetchall()[0][0])
            quoted = str(path).replace("'", "''")
            db.execute(f"ATTACH '{quoted}' AS copy_of_the_hub")
            try:
                self._copying = db
                db.execute(f'COPY FROM DATABASE "{own}" TO copy_of_the_hub')
                db.execute("CHECKPOINT copy_of_the_hub")
                db.execute("USE copy_of_the_hub")
                rows = {name: int(value) for name, value in db.rows("counts")[0].items()}
                return rows, db.version
            finally:
                self._copying = None
                db.execute(f'USE "{own}"')
                db.execute("DETACH copy_of_the_hub")

    def stop_copy(self) -> None:
        """Interrupt `copy_to`, if it is in progress."""
        db = self._copying
        if db is not None:
            db.interrupt()

    def size_b(self) -> int:
        """Return the bytes of the store's files."""
        if self._path is None:
            return 0
        files = (self._path, self._path.with_name(self._path.name + ".wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """Provide the writer; its writes are committed, and on disk, when the block ends."""
        with self._write_lock, self._writer.writing():
            yield self._writer

    @contextmanager
    def exchanging(self, db: Database) -> Iterator[None]:
        """Let another cursor write: the block is its transaction, on disk when it ends, with no other writer."""
        with self._write_lock, db.writing():
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from writing while the block ends a transaction that began before: their changes make it fail."""
        with self._write_lock:
            yield

    @contextmanager
    def watching(self) -> Iterator[Changes]:
        """Collect the changes of runs during the block, for a caller that writes what it computed without the lock."""
        with self._write_lock:
            self._changes = changes = Changes()
        try:
            yield changes
        finally:
            self._changes = None

    def note_changes(self, runs: Iterable[Run], from_end: int | None = None) -> None:
        """Record the changes of the transaction that holds the lock, for `watching`."""
        if from_end is not None:
            self.changed_ends.note(from_end)
        if self._changes is not None:
            self._changes.runs.update(runs)
            if from_end is not None:
                self._changes.from_end = min(self._changes.from_end, from_end)

    def checkpoint(self) -> None:
        """Checkpoint the file where its log has grown; postponed where a reader prevents it.

        DuckDB 1.5.5 does that automatically after commits, but not during a roll-up.
        """
        if self._path is None or self._log_b() < _LOG_B:
            return
        with self._write_lock, contextlib.suppress(StoreError), self.reader() as db:
            db.execute("CHECKPOINT")

    def _log_b(self) -> int:
        log = self._path.with_name(self._path.name + ".wal") if self._path else None
        return log.stat().st_size if log is not None and log.exists() else 0


def mark_of(db: Database, key: str) -> int | None:
    """Return an importer's mark, None where it has not begun."""
    rows = db.rows("mark", {"key": key})
    return int(rows[0]["value"]) if rows else None


def put_aside(db: Database, source: str, rows: Sequence[Aside], now: int) -> int:
    """Store bad rows as `HubStore.quarantine` does, in the caller's transaction."""
    entries = [
        {"source": source, "line": row.line, "reason": row.reason, "raw": row.raw, "at_utc": now} for row in rows
    ]
    return len(db.run("quarantine_add", {"rows": to_json(entries)}).fetchall())
