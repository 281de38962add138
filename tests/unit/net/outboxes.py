"""What a test looks up in an outbox and the programs do not."""

import sqlite3
from contextlib import closing

from gpuwaste.net.durable_file import DurableFile


def rejected(outbox: DurableFile) -> int:
    """Return how many rows the hub has refused; the outbox holds its file alone, so it is closed for the look."""
    outbox.close()
    with closing(sqlite3.connect(outbox.path)) as connection:
        return int(connection.execute("SELECT count(*) FROM rejected").fetchone()[0])
