"""Source of gpu.lost: GPUs that the driver lost while a run held them, as reported by agents."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.act.events.sources import SourceSnapshot, SourceStores
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.gpu import GpuLost
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore

_BACK_S: Final = 24 * HOUR_S  # hours may arrive late; reported events are recognized by their ids for longer
_MOST: Final = 1000


class LostGpus:
    """Checks the last hours; the stream knows what was reported: once for each run and GPU."""

    def __init__(self, store: HubStore) -> None:
        self._store = store

    def events(self, seen: SourceSnapshot) -> Sequence[StoredEvent]:
        """Return the GPUs that were lost recently, each with the same id whenever it is returned."""
        since = (seen.now - _BACK_S) // HOUR_S * HOUR_S
        with self._store.reader() as db:
            rows = db.rows("hours_lost", {"since": since, "limit": _MOST})
        found = []
        for row in rows:
            run = RunKey(row["cluster"], row["job_id"], row["run_start"])
            owner = (row["user"], row["account"])
            lost = (row["node"], row["gpu_uuid"], row["since"], row["lost_ms"] / 1000)
            data = GpuLost(run.cluster, run.job_id, run.start, *owner, *lost)
            found.append(tell("gpu.lost", data, seen.now, run=run, unique=f"{row['node']} {row['gpu_uuid']}"))
        return found

    def told(self) -> None:
        """Do nothing: the stream has the events."""


def make(stores: SourceStores) -> LostGpus:
    """Return the source."""
    return LostGpus(stores.store)
