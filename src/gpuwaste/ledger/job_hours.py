"""What each GPU of a job did over time: about a hundred cells for a job of any length, from the hours that are kept."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.reports.report_types import DeviceHours, HourCell
from gpuwaste.ledger.tally import seconds
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.run import RunKey
from gpuwaste.store.database import Database

MAX_DEVICES: Final = 64
_CELLS: Final = 96


def device_hours(db: Database, runs: Sequence[JobRecord], now: int) -> list[DeviceHours]:
    """Return the GPUs of the runs that were picked last on this connection, as far as they are of `runs`."""
    started = [run for run in runs if run.start is not None]
    if not started:
        return []
    first = min(run.start or 0 for run in started)
    span_s = max(run.end or now for run in started) - first
    bounds = {
        "from_hour": first - first % HOUR_S,
        "from_day": first - first % DAY_S,
        "bin_s": max(1, -(-span_s // (_CELLS * HOUR_S))) * HOUR_S,
        "devices": MAX_DEVICES,
    }
    wanted = {run.run_key for run in started}
    found: dict[tuple[RunKey, str, str], list[HourCell]] = {}
    for row in db.rows("job_hours", bounds):
        key = RunKey(row["cluster"], row["job_id"], row["run_start"])
        if key in wanted:
            cell = HourCell(
                t0=seconds(row["t0_ms"]),
                t1=seconds(row["t1_ms"]),
                known_s=seconds(row["known_ms"]),
                mean_util_pct=round(row["pct_ms"] / row["known_ms"], 2) if row["known_ms"] else None,
            )
            found.setdefault((key, row["node"], row["gpu_uuid"]), []).append(cell)
    return [
        DeviceHours(cluster=key.cluster, job_id=key.job_id, start=key.start, node=node, gpu_uuid=uuid, cells=cells)
        for (key, node, uuid), cells in found.items()
    ]
