"""Moves the hub's store from its file to its lake, or back: what hubs must not use meanwhile, and when they switch.

The hub uses the old store until every count and sum of the new one is equal. Then a note keeps hubs from the old one,
and only then they may open the new one: two hubs must never write to two stores of one site.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import open_lock
from gpuwaste.hub.lake_command import lake_without_hubs
from gpuwaste.hub.store_choice import SCRATCH
from gpuwaste.store.database import Database
from gpuwaste.store.duckdb_connection import quoted
from gpuwaste.store.hub.backup_restore import put_store
from gpuwaste.store.hub.hub_store import STORE_NAME
from gpuwaste.store.hub.store_file import MOVED, UNFINISHED, forget_moved, note_moved
from gpuwaste.store.hub.store_move import FilledLake, MoveResult, Progress, SourceLake, StoreMove, WatchedLake
from gpuwaste.store.lake_database import LakeLocation

BEFORE: Final = ".before-move"
MOVING: Final = STORE_NAME + ".moving"
_LOCK: Final = "move.lock"
_MEMORY_MB: Final = 2048
_MOST_THREADS: Final = 8
_MOVE: Final = "gpuwaste hub move"


@dataclass(frozen=True, slots=True)
class StoreMover:
    """The move of one hub's store; `memory_mb` bounds DuckDB's memory, 0 is 2 GB."""

    state_dir: Path
    lake: LakeLocation
    progress: Progress
    memory_mb: int = 0

    @property
    def store(self) -> Path:
        """The hub's file."""
        return self.state_dir / STORE_NAME

    @contextmanager
    def only_one(self) -> Iterator[None]:
        """Keep another move of this store from running. Raises StoreError, OSError."""
        number = open_lock(self.state_dir / _LOCK)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(f"{self.state_dir}: another `gpuwaste hub move` is running") from error
        else:
            yield
        finally:
            os.close(number)

    def fill_lake(self, snapshot: Path) -> MoveResult:
        """Copy a copy of the store of a running hub to the lake. Raises StoreError."""
        return self._to_lake(snapshot, last=False)

    def to_lake(self) -> MoveResult:
        """Copy what the lake still lacks, and switch the stopped hub to it. Raises StoreError, OSError."""
        return self._to_lake(self.store, last=True)

    def fill_file(self) -> MoveResult:
        """Copy the lake of a running hub to the file that is filled. Raises StoreError, OSError."""
        with closing(WatchedLake.open_lake(self.lake, "hub", self._options())) as db:
            return self._to_file(db, last=False)

    def to_file(self, *, force: bool) -> tuple[MoveResult, bool]:
        """Copy the lake to a new file; return also whether that was the last part, which needs a lake without a hub.

        Raises StoreError, OSError; `force` replaces a file that is there.
        """
        if not force and (self.store.exists() or self.store.with_name(STORE_NAME + ".wal").exists()):
            raise StoreError(f"{self.store}: exists already: --force replaces it, and keeps it as {STORE_NAME}{BEFORE}")
        with lake_without_hubs(self.lake, _MOVE) as holder:
            if holder:
                return self.fill_file(), False
            with closing(SourceLake.open_lake(self.lake, "hub", self._options())) as db:
                done = self._to_file(db, last=True)
                self._switch_to_file(db)
        return done, True

    def reopen_file(self) -> None:
        """Let a hub use the file again. Raises OSError."""
        forget_moved(self.store)

    def reopen_lake(self) -> None:
        """Let a hub use the lake again. Raises StoreError."""
        with closing(SourceLake.open_lake(self.lake, "hub", self._options())) as db, db.writing():
            db.forget_move()

    def _to_lake(self, source: Path, *, last: bool) -> MoveResult:
        Database.open(source, "hub").close()  # with this version's schema, and nothing in its log
        with closing(FilledLake.open_lake(self.lake, "hub", self._options())) as db:
            db.execute(f"ATTACH {quoted(source)} AS file (READ_ONLY)")
            done = StoreMove(db, "lake", self.progress).copy(at_rest=True)
            if last:
                note_moved(self.store, MOVED)
                db.finish()
        return done

    def _to_file(self, db: SourceLake, *, last: bool) -> MoveResult:
        target = self.state_dir / MOVING
        _made(target)
        db.execute(f"ATTACH {quoted(target)} AS file")
        done = StoreMove(db, "file", self.progress).copy(at_rest=last)
        db.execute("CHECKPOINT file")
        db.execute("DETACH file")
        return done

    def _switch_to_file(self, lake: SourceLake) -> None:
        target = self.state_dir / MOVING
        with closing(Database.open(target, "hub")) as db:
            _number_on(db)
            db.execute("CHECKPOINT")
        _sync(target)
        note_moved(self.store, UNFINISHED)
        with lake.writing():  # fails where a hub has taken over the lake
            lake.forget_move()
            lake.note_move("moved")
        put_store(target, self.store, BEFORE)

    def _options(self) -> dict[str, str]:
        threads = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
        memory = self.memory_mb or _MEMORY_MB
        scratch = str(self.state_dir / SCRATCH)
        return {"threads": str(threads), "memory_limit": f"{memory}MB", "temp_directory": scratch}


def _made(target: Path) -> None:
    """Create the file that is filled, or continue with one that a move left; an unusable one is created again."""
    try:
        Database.open(target, "hub").close()
    except StoreError:
        if not target.exists():
            raise
        for path in (target, target.with_name(target.name + ".wal")):
            path.unlink(missing_ok=True)
        Database.open(target, "hub").close()


def _number_on(db: Database) -> None:
    """Set the number of the next event after the last one: a lake has no sequence."""
    ((last, used),) = db.execute(
        f"SELECT {db.text('event_seq')}, coalesce(last_value, 0) FROM duckdb_sequences()"  # noqa: S608 a query of ours
        " WHERE sequence_name = 'event_seq'"
    ).fetchall()
    if used < last:
        db.execute("SELECT max(nextval('event_seq')) FROM range(?)", [last - used]).fetchall()


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
