"""Old hours become days: a step adds up some jobs' hours of one UTC day, and removes them, in one transaction.

The sums are made on a cursor of their own while ingest goes on; the write lock is held only for the exchange.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuwaste.core.errors import StoreError
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.hour_store import note_rolled
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

STEP_HOURS: Final = 40_000  # rows exchanged at a time: a fraction of a second under the lock


class ChangedError(StoreError):
    """Rows were changed between the reading and the exchange: it is left."""


class Rollup:
    """Rolls up one store; one thread at a time. `hang` are the ledger's limits of hang_ms (ledger/load.py)."""

    def __init__(self, store: HubStore, hang: Mapping[str, float], step_hours: int = STEP_HOURS) -> None:
        self._store = store
        self._hang = dict(hang)
        self._step_hours = step_hours

    def steps(self, before: int) -> Iterator[int]:
        """Add up what is due of the days before the UTC second `before`; yields the hours taken after each step.

        Due are final hours of runs that accounting ended before then. What was yielded is on disk. Raises StoreError.
        """
        before -= before % DAY_S
        with self._store.reader() as db:
            first = db.rows("rollup_first", {"before": before})[0]["hour_utc"]
        for day in range(before if first is None else first - first % DAY_S, before, DAY_S):
            first_job = 0
            with self._store.reader() as db:
                parts = db.rows("rollup_parts", {"day": day, "step_hours": self._step_hours})
            for part in parts:
                jobs = {"from_job": first_job, "to_job": part["to_job"]}
                first_job = part["to_job"] + 1
                with self._store.reader() as db:
                    taken = self._step(db, {"day": day, "before": before, **jobs})
                yield taken

    def _step(self, db: Database, which: Mapping[str, Any]) -> int:
        day = {"day": which["day"]}
        db.run("rollup_due", which)
        due = int(db.execute("SELECT count(*) FROM rollup_due").fetchall()[0][0])
        if not due:
            return 0
        db.run("rollup_rows", {**day, **self._hang})
        note_rolled(self._store, which["day"] + DAY_S)
        try:
            with self._store.exchanging(db):
                self._exchange(db, day, due)
        except ChangedError:
            return 0  # the next pass sees the corrected ones
        return due

    def _exchange(self, db: Database, day: Mapping[str, Any], due: int) -> None:
        removed = int(db.run("rollup_delete_hours", day).fetchall()[0][0])
        if removed != due:
            raise ChangedError("hours were corrected while they were added up")
        db.run("rollup_delete_days", day).fetchall()
        db.run("rollup_insert", day).fetchall()
