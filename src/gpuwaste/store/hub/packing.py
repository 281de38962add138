"""Days of a past stretch of time are put in the order of users: a user's report of a year then reads few blocks.

Days are appended as they are added up, one UTC day after the other, so that each user's rows lie in as many places as
the year has days, and DuckDB reads whole vectors. Packed, they lie in one place for each stretch.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.rollup import ChangedError

STRETCH_S: Final = 32 * DAY_S
PACKED_MARK: Final = "packed_until"  # UTC seconds: what was added up before then is packed
STEP_ROWS: Final = 40_000  # rows moved at a time: a fraction of a second under the lock


class Packing:
    """Packs one store; on the thread that rolls up, since both move rows of days."""

    def __init__(self, store: HubStore, step_rows: int = STEP_ROWS) -> None:
        self._store = store
        self._step_rows = step_rows

    def steps(self, before: int) -> Iterator[int]:
        """Pack the stretches that end before the UTC second `before`; yields the rows moved by each step.

        A stretch that was broken off begins anew; days that come late stay where they are appended. Raises StoreError.
        """
        begin = self._store.mark(PACKED_MARK)
        if begin is None:
            with self._store.reader() as db:
                begin = db.rows("days_first")[0]["day_utc"]
        if begin is None:
            return
        for stretch in range(begin - begin % STRETCH_S, before - STRETCH_S + 1, STRETCH_S):
            yield from self._stretch({"from_day": stretch, "to_day": stretch + STRETCH_S})
            self._store.set_mark(PACKED_MARK, stretch + STRETCH_S)

    def _stretch(self, days: Mapping[str, int]) -> Iterator[int]:
        first = 0
        with self._store.reader() as db:
            parts = db.rows("days_parts", {**days, "step_rows": self._step_rows})
        for part in parts:
            which = {**days, "from_part": first, "to_part": part["to_part"]}
            first = part["to_part"] + 1
            # One user with so many rows fills vectors of his own where they are.
            if part["rows"] <= 2 * self._step_rows:
                yield self._move(which)

    def _move(self, which: Mapping[str, int]) -> int:
        with self._store.reader() as db:
            db.run("days_pick", which)
            picked = int(db.execute("SELECT count(*) FROM days_picked").fetchall()[0][0])
            try:
                with self._store.exchanging(db):
                    self._exchange(db, which, picked)
            except ChangedError:
                return 0  # they stay where they are, which costs time and nothing else
        return picked

    @staticmethod
    def _exchange(db: Database, which: Mapping[str, int], picked: int) -> None:
        if int(db.run("days_pick_delete", which).fetchall()[0][0]) != picked:
            raise ChangedError("days got another user while they were picked")
        db.run("days_pick_insert").fetchall()
