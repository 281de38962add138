"""The outbox's tables, as steps from one PRAGMA user_version to the next. A step that was released never changes."""

from typing import Final

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
