"""The lake's inbox: batches that hubs standing by have accepted, until the serving hub merges them.

Hubs append to the table `arrived`, one row per batch, and never change it. The serving hub stores in `folded` the last
snapshot whose rows it has merged, in the transaction in which it merges them. Merged rows are dropped with their
table: it is renamed to `arrived_closed`, a new one takes its name, and the commit of an append that began before
fails, so nothing is added to a table that is about to be dropped.
"""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.errors import StoreError
from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.lake_database import LakeDatabase, LakeLocation

PAGE: Final = 64  # most batches that are merged in one transaction
PAGE_B: Final = 2 * 1024**2  # their bodies, unless one commit has more: senders to this hub wait meanwhile
MOST_APPENDED: Final = PAGE // 2  # in one commit: a page has all rows of a snapshot
TURN_ROWS: Final = 500  # merged batches that are kept before their table is closed
_TURN_AGE_US: Final = DAY_S * 1_000_000  # of the oldest of them
_NEW: Final = "arrived"
_CLOSED: Final = "arrived_closed"
_COLUMNS: Final = (
    "kind VARCHAR NOT NULL, at_utc_us BIGINT NOT NULL, sender VARCHAR NOT NULL, bytes BIGINT NOT NULL,"
    " body VARCHAR NOT NULL"
)
_CREATE: Final = f"CREATE TABLE IF NOT EXISTS {_NEW} ({_COLUMNS})"
_CREATE_PLACE: Final = "CREATE TABLE IF NOT EXISTS folded (snapshot BIGINT NOT NULL, token BIGINT NOT NULL)"
_FIRST_PLACE: Final = "INSERT INTO folded SELECT 0, 0 WHERE NOT EXISTS (FROM folded)"
_INLINE: Final = "CALL lake.set_option('data_inlining_row_limit', 1000, table_name => 'folded')"
_FOLDS: Final = "SELECT count(*) FROM folded JOIN fence USING (token)"
_APPEND: Final = f"INSERT INTO {_NEW} (kind, at_utc_us, sender, bytes, body) VALUES "  # noqa: S608 names of ours
_BEFORE: Final = "WHERE snapshot_id <= (SELECT snapshot FROM folded)"
_DUE: Final = f"SELECT count(*) >= ? OR coalesce(min(at_utc_us) < ?, false) FROM {_NEW} {_BEFORE}"  # noqa: S608
_AFTER: Final = "WHERE snapshot_id > (SELECT snapshot FROM folded)"
_SEALED: Final = "sealed"
_COMMENT: Final = "SELECT comment FROM duckdb_tables() WHERE database_name = 'lake' AND table_name = ?"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A batch accepted by a hub that stands by: its route, time, sender and body.

    Rejected lines are empty. The sender's permissions were checked when it arrived.
    """

    kind: str
    at_us: int
    sender: str
    body: bytes


@dataclass(frozen=True, slots=True)
class InboxBacklog:
    """The batches that are not merged yet; `folds` is whether the serving hub merges at all."""

    batches: int = 0
    size_b: int = 0
    oldest_us: int | None = None
    folds: bool = True


@dataclass(frozen=True, slots=True)
class InboxPage:
    """Batches in the order of their commits, and the snapshot of the last."""

    arrivals: Sequence[Arrival]
    until: int


class HubLake(LakeDatabase):
    """The lake of the serving hub, with its inbox."""

    def _take_over(self) -> None:
        # Not in the transaction that changes the fence's row: see `turn`.
        for statement in (_CREATE, _CREATE_PLACE, _INLINE):  # one row that changes with each merge, as the fence
            self.execute(statement)
        super()._take_over()

    def _begin(self, token: int) -> None:
        self.execute(_FIRST_PLACE)
        self.execute("UPDATE folded SET token = $token", {"token": token})


class InboxWriter:
    """Appends batches for a hub that stands by; for one thread at a time."""

    def __init__(self, location: LakeLocation) -> None:
        """Open the lake. Raises StoreError."""
        self._db = LakeDatabase.open_appender(location, "hub")

    def append(self, arrivals: Sequence[Arrival]) -> int:
        """Store batches; they are committed when it returns. Raises StoreError; they may be stored all the same."""
        values: list[Any] = []
        for one in arrivals:
            values += [one.kind, one.at_us, one.sender, len(one.body), _packed(one.body)]
        statement = _APPEND + ", ".join(["(?, ?, ?, ?, ?)"] * len(arrivals))
        try:
            self._append(statement, values)
        except StoreError:
            self._append(statement, values)  # the table was closed meanwhile; otherwise a second failure has the reason
        return len(arrivals)

    def _append(self, statement: str, values: Sequence[Any]) -> None:
        with self._db.transaction():
            self._db.execute(statement, values)

    def close(self) -> None:
        """Leave the lake."""
        self._db.close()


def has_inbox(db: Database) -> bool:
    """Return whether a hub of a version that merges has run on the lake."""
    return db.has_table(_NEW)


def waiting(db: Database) -> InboxBacklog:
    """Return the backlog that is not merged yet. Raises StoreError."""
    with db.transaction():
        if not has_inbox(db):
            return InboxBacklog(folds=False)
        batches, size_b, oldest_us = db.execute(
            f"SELECT count(*), coalesce(sum(bytes), 0)::BIGINT, min(at_utc_us) FROM {_rows(db)} {_AFTER}"  # noqa: S608
        ).fetchall()[0]
        folds = db.execute(_FOLDS).fetchall() == [(1,)]
    return InboxBacklog(int(batches), int(size_b), oldest_us, folds)


def page(db: Database) -> InboxPage | None:
    """Return the next batches to merge, None where there are none. Raises StoreError."""
    rows = _rows(db)
    found = db.execute(
        f"SELECT snapshot_id, bytes FROM {rows} {_AFTER} ORDER BY snapshot_id LIMIT {PAGE}"  # noqa: S608 names of ours
    ).fetchall()
    if not found:
        return None
    until = _last_of_page(found)
    taken = db.execute(
        f"SELECT kind, at_utc_us, sender, body FROM {rows} {_AFTER} AND snapshot_id <= $until"  # noqa: S608
        " ORDER BY snapshot_id, rowid",
        {"until": until},
    ).fetchall()
    return InboxPage([Arrival(kind, at, sender, _unpacked(body)) for kind, at, sender, body in taken], until)


def _last_of_page(found: Sequence[tuple[int, int]]) -> int:
    """Return the last snapshot of a page, from snapshots and bytes of batches: all of a snapshot is in one page."""
    snapshots = sorted({number for number, _ in found})
    if len(found) == PAGE and len(snapshots) > 1:
        del snapshots[-1]  # it may continue beyond the rows that were read
    size_b, until = 0, snapshots[0]
    for number in snapshots:
        size_b += sum(size for snapshot, size in found if snapshot == number)
        if number > snapshots[0] and size_b > PAGE_B:
            break
        until = number
    return until


def note_folded(db: Database, until: int) -> None:
    """Store, in the transaction that merges a page, how far the inbox is merged."""
    db.execute("UPDATE folded SET snapshot = $until WHERE snapshot < $until", {"until": until})


def turn(store: HubStore, now_us: int, rows: int = TURN_ROWS) -> None:
    """Close the table where it is long or old, or seal a closed one, or drop it where all of it is merged.

    Each step is correct for any hub, also one that was replaced meanwhile, so it needs no fence. With the fence's row
    in a transaction that makes a table, DuckLake 1.5.5 gives the lake up when it merges files. Raises StoreError.
    """
    with store.reader() as db, db.transaction():
        closed = db.execute(_COMMENT, [_CLOSED]).fetchall()
        if not closed:
            if db.execute(_DUE, [rows, now_us - _TURN_AGE_US]).fetchall() == [(True,)]:
                db.execute(f"ALTER TABLE {_NEW} RENAME TO {_CLOSED}")
                db.execute(_CREATE)
        elif closed != [(_SEALED,)]:
            # A change of the table: appends that began before the renaming fail, later ones go to the new one.
            db.execute(f"COMMENT ON TABLE {_CLOSED} IS '{_SEALED}'")
        elif db.execute(f"SELECT count(*) FROM {_CLOSED} {_AFTER}").fetchall() == [(0,)]:  # noqa: S608 names of ours
            db.execute(f"DROP TABLE {_CLOSED}")


def _rows(db: Database) -> str:
    """Return the rows of the inbox's tables, as the source of a query."""
    columns = "snapshot_id, rowid, kind, at_utc_us, sender, bytes, body"
    both = (_CLOSED, _NEW) if db.has_table(_CLOSED) else (_NEW,)
    return "(" + " UNION ALL ".join(f"SELECT {columns} FROM {table}" for table in both) + ")"  # noqa: S608


def _packed(body: bytes) -> str:
    """Return a body as ASCII without NUL: the catalog may not store other text."""
    return base64.b64encode(zlib.compress(body, 1)).decode("ascii")


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
