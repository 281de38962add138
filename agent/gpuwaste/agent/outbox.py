"""The durable outbox: rows of hours from the moment they are put until the hub has acknowledged them.

A separate file (durable_file.py). Rows without acknowledgement are never dropped: while the hub is unreachable the file
grows by about 1 KB per GPU, job and hour (a node of eight GPUs with hour-long jobs: 200 rows, 0.2 MB a day).
"""

import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from gpuwaste.agent.agent_ports import AgentPorts
from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.version import own_version
from gpuwaste.ledger.hour import AllocationHour, HourBatch, HourLine, encode_hour, hour_from_line
from gpuwaste.net.batch import MAX_BATCH_BYTES, Batch, Envelope
from gpuwaste.net.durable_file import DurableFile
from gpuwaste.net.shipper import Shipper

KEY: Final = ("cluster", "job_id", "start", "node", "gpu_uuid", "hour_utc")
_KEY_COLUMNS: Final = (
    "cluster TEXT NOT NULL, job_id INTEGER NOT NULL, start INTEGER NOT NULL, node TEXT NOT NULL, "
    "gpu_uuid TEXT NOT NULL, hour_utc INTEGER NOT NULL"
)

MIGRATIONS: Final = (
    f"""
    CREATE TABLE hours (
        {_KEY_COLUMNS},
        seq INTEGER NOT NULL,
        final INTEGER NOT NULL,
        acked_seq INTEGER NOT NULL DEFAULT -1,  -- the newest version that the hub has, or has refused
        payload BLOB NOT NULL,                  -- the row as it travels: JSON, no newline
        PRIMARY KEY ({", ".join(KEY)})
    );
    CREATE INDEX hours_unsent ON hours (hour_utc) WHERE seq > acked_seq;
    CREATE TABLE rejected (
        {_KEY_COLUMNS},
        seq INTEGER NOT NULL,
        reason TEXT NOT NULL,
        rejected_at INTEGER NOT NULL,           -- UTC seconds
        payload BLOB NOT NULL,
        PRIMARY KEY ({", ".join(KEY)})
    );
    """,
)
MAX_BATCH_ROWS: Final = 5000
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
_UNREADABLE: Final = log_event.error(
    "outbox-row-unreadable: outbox {path}: cannot read a row, it is not sent and stays in the file: {error}",
    "A row of another version, or a damaged one; the others are sent. Report the line.",
)


class Outbox(DurableFile, Part):
    """One open outbox. The sampling thread puts and the shipper takes, protected by a lock."""

    migrations = MIGRATIONS
    owner = "agent"

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an agent. Raises StoreError."""
        return cls(Path(parts.get(Config).agent.state_dir) / "outbox.sqlite")

    def put(self, rows: Sequence[AllocationHour]) -> int:
        """Store rows durably, all or none; return how many were new (a seq above the stored one of that key).

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
        """Return the rows that are not final, oldest first, from which the agent continues after a restart."""
        sql = f"SELECT payload FROM hours WHERE NOT final ORDER BY hour_utc, {_COLUMNS}"  # noqa: S608 constants
        payloads = self._run(lambda connection: connection.execute(sql).fetchall())
        return [hour for (payload,) in payloads if (hour := self._decoded(payload)) is not None]

    def take(self, max_bytes: int = MAX_BATCH_BYTES, max_rows: int = MAX_BATCH_ROWS) -> HourBatch | None:
        """Return the oldest rows whose newest version is not acknowledged, as a new batch, or None if there are none.

        They stay here until `ack`. A single row larger than `max_bytes` is a separate batch.
        """
        rows: list[HourLine] = []

        def collect(connection: sqlite3.Connection) -> None:
            rows.clear()
            size = 0
            for row in connection.execute(_UNSENT, (max_rows,)):
                size += len(row[8]) + 1
                if rows and size > max_bytes:
                    break
                rows.append(HourLine(row[:6], row[6], bool(row[7]), row[8]))

        self._run(collect)
        return Batch(tuple(rows)) if rows else None

    def ack(self, batch: HourBatch, rejected: Mapping[int, str] | None = None) -> list[tuple[HourLine, str]]:
        """Record that the hub has the batch: a final row is removed, any other stays with its acknowledged seq.

        `rejected` maps line numbers (the first row is line 2) to reasons: those rows are kept in the table `rejected`.
        Returns the rejected rows that were not there before, with their reasons. Raises StoreError: then the rows are
        sent again, which is harmless.
        """
        refused = [(batch.rows[line - 2], reason) for line, reason in (rejected or {}).items()]

        def settle(connection: sqlite3.Connection) -> list[tuple[HourLine, str]]:
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

    def _decoded(self, payload: bytes) -> AllocationHour | None:
        try:
            return hour_from_line(payload)
        except ParseError as error:
            _UNREADABLE.log(path=self.path, error=error)
            return None


def _reject(connection: sqlite3.Connection, row: HourLine, reason: str) -> bool:
    """Store a rejected row; return True if no version of it was stored before."""
    known = connection.execute(f"SELECT 1 FROM rejected WHERE {_MATCH}", row.key).fetchone()  # noqa: S608 constants
    connection.execute(
        "INSERT OR REPLACE INTO rejected VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*row.key, row.seq, reason, int(time.time()), row.line),
    )
    return known is None


class HourShipping(Part):
    """Sends hours to the hub."""

    def __init__(self, parts: Parts) -> None:
        ports, every_s = parts.get(AgentPorts), parts.get(Config).agent.ship_every_s
        envelope = Envelope(ports.site.cluster, ports.site.node, _boot_id(), own_version())
        self._outbox = parts.get(Outbox)
        send = ports.hub.post_hours
        self.shipper: Shipper[HourBatch] = Shipper(self._outbox, send, envelope, ports.clock, every_s=every_s)

    def depth(self) -> int | None:
        """Return how many rows wait, None where the outbox cannot be read."""
        try:
            return self._outbox.depth()
        except StoreError:
            return None

    def before_start(self) -> None:
        """Start shipping."""
        self.shipper.start()

    def close(self) -> None:
        """Ship once more."""
        self.shipper.stop()


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"
