"""The advisor's durable outbox: verdicts until the hub has acknowledged them, and each user's spending of a budget.

Both are stored in one transaction, so that a restart neither forgets a reject nor counts it twice. Each verdict takes
about 1.5 KB while the hub cannot be reached.
"""

import socket
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Final, Self

from gpuwaste.advice.policy.policy_case import Spent
from gpuwaste.advice.verdicts.verdict_batch import VerdictBatch, VerdictLine
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.units import DAY_S
from gpuwaste.core.version import own_version
from gpuwaste.net.batch import MAX_BATCH_BYTES, Batch, Envelope
from gpuwaste.net.durable_file import DurableFile
from gpuwaste.net.shipper import Shipper

MAX_BATCH_ROWS: Final = 5000
_ENVELOPE_BYTES: Final = 4096  # left free in a batch, so that the complete body stays within the hub's limit
REJECTED_S: Final = 400 * DAY_S  # verdicts rejected by the hub are kept, with their reason: they have names
_KEPT_DAYS: Final = 2  # days of spending kept besides today's: a verdict may arrive twice around midnight

OUTBOX: Final = "verdicts.sqlite"
SHIP_EVERY_S: Final = 2.0
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
MIGRATIONS: Final = (
    """
    CREATE TABLE verdicts (
        n INTEGER PRIMARY KEY AUTOINCREMENT,    -- the order in which they were put
        id TEXT NOT NULL UNIQUE,
        payload BLOB NOT NULL                   -- the verdict as it travels: JSON, no newline
    );
    CREATE TABLE rejected (
        id TEXT PRIMARY KEY,
        reason TEXT NOT NULL,
        rejected_at INTEGER NOT NULL,           -- UTC seconds
        payload BLOB NOT NULL
    );
    CREATE TABLE spent (
        id TEXT NOT NULL,                       -- the verdict's: the same one never counts twice
        kind TEXT NOT NULL,                     -- reject, override
        user TEXT NOT NULL,
        day TEXT NOT NULL,                      -- local date, YYYY-MM-DD
        PRIMARY KEY (id, kind)
    ) WITHOUT ROWID;
    CREATE INDEX spent_of ON spent (day, kind, user);
    """,
)


@dataclass(slots=True)
class Chunk:
    """Verdicts as they are sent, with their spending as (id, kind, user, day): stored in one transaction."""

    rows: list[VerdictLine] = field(default_factory=list)
    spent: list[tuple[str, Spent, str, str]] = field(default_factory=list)
    newest_utc_us: int = 0


class VerdictOutbox(DurableFile, Part):
    """One open outbox; any thread may put, spend, take and acknowledge."""

    migrations = MIGRATIONS
    owner = "advisor"

    def __init__(self, path: Path, zone: tzinfo | None = None) -> None:
        """Open or create it; days are those of `zone`, None for this host's. Raises StoreError."""
        self._zone = zone
        super().__init__(path)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor. Raises StoreError."""
        return cls(parts.get(AdvisorPorts).state_dir / OUTBOX)

    def put(self, chunk: Chunk) -> int:
        """Store verdicts durably, all or none, and count their spending; return how many were new.

        A verdict whose id is already here changes nothing, and no id counts twice in a budget. Raises StoreError (disk
        full, disk error): nothing was stored, and a retry is harmless.
        """
        rows = [(row.id, row.line) for row in chunk.rows]
        if not rows:
            return 0
        newest = self.day_of(chunk.newest_utc_us)
        oldest = (date.fromisoformat(newest) - timedelta(days=_KEPT_DAYS)).isoformat()

        def store(connection: sqlite3.Connection) -> int:
            before = connection.total_changes
            connection.executemany("INSERT OR IGNORE INTO verdicts (id, payload) VALUES (?, ?)", rows)
            news = connection.total_changes - before
            connection.executemany("INSERT OR IGNORE INTO spent VALUES (?, ?, ?, ?)", chunk.spent)
            connection.execute("DELETE FROM spent WHERE day < ?", (oldest,))
            connection.execute("DELETE FROM rejected WHERE rejected_at < ?", (int(time.time()) - REJECTED_S,))
            return news

        return self._run(store)

    def spent_on(self, day: str) -> Mapping[tuple[Spent, str], int]:
        """Return the spending of every user on a local date (see `day_of`), by (kind, user)."""
        sql = "SELECT kind, user, count(*) FROM spent WHERE day = ? GROUP BY kind, user"
        rows = self._run(lambda connection: connection.execute(sql, (day,)).fetchall())
        return {(kind, user): int(count) for kind, user, count in rows}

    def day_of(self, at_utc_us: int) -> str:
        """Return the local date of an instant, YYYY-MM-DD."""
        return datetime.fromtimestamp(at_utc_us // 1_000_000, UTC).astimezone(self._zone).date().isoformat()

    def take(
        self, max_bytes: int = MAX_BATCH_BYTES - _ENVELOPE_BYTES, max_rows: int = MAX_BATCH_ROWS
    ) -> VerdictBatch | None:
        """Return the oldest verdicts in a new batch, None if there are none; they stay here until `ack`."""
        rows: list[VerdictLine] = []

        def collect(connection: sqlite3.Connection) -> None:
            rows.clear()
            size = 0
            for id_, payload in connection.execute("SELECT id, payload FROM verdicts ORDER BY n LIMIT ?", (max_rows,)):
                size += len(payload) + 1
                if rows and size > max_bytes:
                    break
                rows.append(VerdictLine(id_, payload))

        self._run(collect)
        return Batch(tuple(rows)) if rows else None

    def ack(self, batch: VerdictBatch, rejected: Mapping[int, str] | None = None) -> list[tuple[VerdictLine, str]]:
        """Delete the verdicts that the hub has acknowledged.

        `rejected` maps line numbers (the first verdict is line 2) to reasons: those are kept in the table `rejected`
        and returned, if they were not in it before. Raises StoreError: then the batch is sent again, which is harmless.
        """
        refused = [(batch.rows[line - 2], reason) for line, reason in (rejected or {}).items()]

        def settle(connection: sqlite3.Connection) -> list[tuple[VerdictLine, str]]:
            new = []
            for row, reason in refused:
                sql = "INSERT OR IGNORE INTO rejected VALUES (?, ?, ?, ?)"
                if connection.execute(sql, (row.id, reason, int(time.time()), row.line)).rowcount:
                    new.append((row, reason))
            connection.executemany("DELETE FROM verdicts WHERE id = ?", [(row.id,) for row in batch.rows])
            return new

        new = self._run(settle)
        self._shrink()
        return new

    def depth(self) -> int:
        """Return the number of verdicts that the hub has not acknowledged."""
        return self._count("SELECT count(*) FROM verdicts")


class VerdictShipping(Part):
    """Sends verdicts to the hub, so that each arrives before its job is shown anywhere."""

    def __init__(self, parts: Parts) -> None:
        outbox, ports = parts.get(VerdictOutbox), parts.get(AdvisorPorts)
        boot_id = _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else "unknown"
        envelope = Envelope(ports.cluster, socket.gethostname(), boot_id, own_version())
        self.shipper: Shipper[VerdictBatch] = Shipper(
            outbox, ports.hub.post_verdicts, envelope, ports.clock,
            every_s=SHIP_EVERY_S, what="verdicts",
        )  # fmt: skip

    def before_start(self) -> None:
        """Start shipping."""
        self.shipper.start()

    def close(self) -> None:
        """Ship a last time."""
        self.shipper.stop()
