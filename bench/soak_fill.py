"""A store that is not new: a day's rows of every node, and copies of them for the days before the soak."""

from pathlib import Path

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.fleet_rows import rows_of_hour

_DAY_H = 24
_JOBS = 2_000_000  # more than the ids of a fleet's jobs
_SHIFTED = """
INSERT INTO hours SELECT * REPLACE (
    job_id + $jobs AS job_id, run_start + $s AS run_start, hour_utc + $s AS hour_utc,
    t0_ms + 1000 * $s::BIGINT AS t0_ms, t1_ms + 1000 * $s::BIGINT AS t1_ms,
    last_active_ms + 1000 * $s::BIGINT AS last_active_ms
) FROM hours WHERE job_id < $day_jobs
"""


def fill_hours(store: Path, nodes: int, hours: int) -> None:
    """Put `hours` hours of rows, in whole days, into a store that no hub holds; all but the first day are copies."""
    hub = HubStore.open(store, SystemClock())
    for node in range(nodes):
        upsert_hours(hub, [row for hour in range(_DAY_H) for row in rows_of_hour(node, hour, 1, final=True)])
    hub.close()
    with connect(store, {"memory_limit": "2GB"}) as db:
        for day in range(1, hours // _DAY_H):
            db.execute(_SHIFTED, {"s": day * _DAY_H * HOUR_S, "jobs": day * _JOBS, "day_jobs": _JOBS})
