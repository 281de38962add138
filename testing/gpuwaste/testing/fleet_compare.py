"""What a fleet has put beside what the hub's store holds: full sets of keys, and a checksum of every row's values."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.store.duckdb_connection import connect
from gpuwaste.testing.fleet_rows import CHECK_SQL

_COLUMNS: Final = {
    "cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT", "node": "VARCHAR", "gpu_uuid": "VARCHAR",
    "hour_utc": "BIGINT", "seq": "BIGINT", "value": "VARCHAR",
}  # fmt: skip
_KEY: Final = "cluster, job_id, run_start, node, gpu_uuid, hour_utc"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows by key: put by the agents (the newest version of each), stored, and how they differ."""

    sent: int
    stored: int
    missing: int  # put, not stored
    foreign: int  # stored, never put
    different: int  # stored with other values
    repeated: int  # keys that the store has more than once

    @property
    def equal(self) -> bool:
        """Whether both sets are the same, values included."""
        return self.sent == self.stored and not (self.missing or self.foreign or self.different or self.repeated)


def compare(store: Path, records: Sequence[Path], first_hour: int = 0) -> Comparison:
    """Compare the records of a fleet with a store that no hub holds, from `first_hour` on."""
    with connect(options={"memory_limit": "4GB", "threads": "2"}) as db:
        db.execute(f"ATTACH '{store}' AS hub (READ_ONLY)")
        db.execute(
            f"CREATE TABLE sent AS SELECT {_KEY}, arg_max(value, seq) AS value FROM"  # noqa: S608 constants
            " read_csv($files, delim = '\t', header = false, quote = '', columns = $columns)"
            f" GROUP BY {_KEY}",
            {"files": [str(path) for path in records], "columns": _COLUMNS},
        )
        db.execute(
            f"CREATE TABLE stored AS SELECT {_KEY}, any_value({CHECK_SQL}) AS value, count(*) AS copies"  # noqa: S608 constants
            f" FROM hub.hours WHERE hour_utc >= $first GROUP BY {_KEY}",
            {"first": first_hour},
        )
        found = db.execute(
            "SELECT count(a.value), count(b.value), count(a.value) FILTER (b.value IS NULL),"  # noqa: S608 constants
            " count(b.value) FILTER (a.value IS NULL), count(*) FILTER (a.value <> b.value),"
            f" count(*) FILTER (b.copies > 1) FROM sent a FULL JOIN stored b USING ({_KEY})"
        ).fetchone()
    assert found is not None  # noqa: S101 an aggregate has one row
    return Comparison(*(int(value) for value in found))
