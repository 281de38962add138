"""DisputeStore: what owners say of the judgement on their runs, in the hub's store."""

from collections.abc import Collection
from typing import Any

from gpuwaste.core.clock import Clock
from gpuwaste.core.text import storable
from gpuwaste.jobs.run_store import runs_named
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.run import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json


class DisputeStore:
    """The disputes of a hub's store; threads share it as they share the store."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def own_runs(self, printed_id: str, user: str) -> list[JobRecord]:
        """Return the runs of a job that are this user's."""
        return runs_named(self._store, printed_id, accounts=(), reader=user)

    def add(self, runs: Collection[JobRecord], user: str, words: str) -> None:
        """Store what `user` says of runs; what was said of them before is replaced."""
        now = self._clock.utc_us() // 1_000_000
        said = {"user": user, "at_utc": now, "words": storable(words)}
        rows = [{**_key(run.run_key), "printed_id": run.printed_id, **said} for run in runs]
        if rows:
            with self._store.writing() as db:
                db.run("disputes_add", {"rows": to_json(rows)})

    def of(self, runs: Collection[RunKey]) -> list[dict[str, Any]]:
        """Return what was said of runs, the oldest first."""
        with self._store.reader() as db:
            return db.rows("disputes_of", {"runs": to_json(map(_key, runs))})

    def newest(self, limit: int, user: str | None = None) -> list[dict[str, Any]]:
        """Return what was said last, by a user or by all."""
        with self._store.reader() as db:
            return db.rows("disputes_newest", {"limit": limit, "user": user})


def _key(run: RunKey) -> dict[str, Any]:
    return {"cluster": run.cluster, "job_id": run.job_id, "run_start": run.start}
