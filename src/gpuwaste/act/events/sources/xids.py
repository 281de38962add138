"""Source of gpu.xid: Xid errors that agents counted while a run held the GPU."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.act.events.sources import SourceSnapshot, SourceStores
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.gpu import GpuXid
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore

_BACK_S: Final = 24 * HOUR_S  # hours may arrive late; reported events are recognized by their ids for longer
_MOST: Final = 1000


class Xids:
    """Checks the last hours; the stream knows what was reported: once for each run, GPU, hour and number."""

    def __init__(self, store: HubStore) -> None:
        self._store = store

    def events(self, seen: SourceSnapshot) -> Sequence[StoredEvent]:
        """Return the errors of the last day, each with the same id whenever it is returned."""
        since = (seen.now - _BACK_S) // HOUR_S * HOUR_S
        with self._store.reader() as db:
            rows = db.rows("hours_xids", {"since": since, "limit": _MOST})
        found = []
        for row in rows:
            run = RunKey(row["cluster"], row["job_id"], row["run_start"])
            what = (row["node"], row["gpu_uuid"], row["xid"], row["hour_utc"], row["count"])
            data = GpuXid(run.cluster, run.job_id, run.start, row["user"], row["account"], *what)
            unique = f"{row['node']} {row['gpu_uuid']} {row['xid']} {row['hour_utc']}"
            found.append(tell("gpu.xid", data, seen.now, run=run, unique=unique))
        return found

    def told(self) -> None:
        """Do nothing: the stream has the events."""


def make(stores: SourceStores) -> Xids:
    """Return the source."""
    return Xids(stores.store)
