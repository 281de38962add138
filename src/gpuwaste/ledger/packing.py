"""Rows of a past stretch of time are put in the order of users: a user's report of a year then reads few blocks.

Rows are appended in the order of time, so that each user's lie in as many places as the year has days, and DuckDB reads
whole vectors. Packed, they lie in one place for each stretch.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from gpuwaste.core.errors import StoreError
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.rollup import ChangedError
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.table_parts import STRETCH_S

Which = Mapping[str, Any]
"""The parameters of a query: a stretch from_s to before to_s, and what is first and last of a slice of it."""


class Packing(ABC):
    """Packs one table of a store; on the thread that rolls up, since both move rows.

    A subclass has queries of its table's name: TABLE_first, TABLE_slices, TABLE_pick, TABLE_pick_delete and
    TABLE_pick_insert.
    """

    table: ClassVar[str]
    mark: ClassVar[str]  # UTC seconds: what began before then is packed
    stretch_s: ClassVar[int] = STRETCH_S
    step_rows: ClassVar[int]  # rows moved at a time: a fraction of a second under the lock

    def __init__(self, store: HubStore, step_rows: int = 0) -> None:
        self._store = store
        self._step_rows = step_rows or self.step_rows

    def steps(self, before: int) -> Iterator[int]:
        """Pack the stretches that end before the UTC second `before`; yields the rows moved by each step.

        A stretch that was broken off begins anew; rows that come late stay where they are appended. Raises StoreError.
        """
        begin = self._store.mark(self.mark)
        if begin is None:
            with self._store.reader() as db:
                begin = db.rows(f"{self.table}_first")[0]["first"]
        if begin is None:
            return
        for stretch in range(begin - begin % self.stretch_s, before - self.stretch_s + 1, self.stretch_s):
            until = stretch + self.stretch_s
            yield from self._stretch({"from_s": stretch, "to_s": until})
            self._store.set_mark(self.mark, until)

    def _stretch(self, bounds: Which) -> Iterator[int]:
        with self._store.reader() as db:
            slices = db.rows(f"{self.table}_slices", {**bounds, "step_rows": self._step_rows})
        for found in slices:
            # One user with so many rows fills vectors of their own where they are.
            if found["rows"] <= 2 * self._step_rows:
                with self._store.reader() as db:
                    moved = self._move(db, {**bounds, "first": found["first"], "last": found["last"]})
                yield moved  # with the picked rows let go: whoever asks for the steps pauses between them

    @abstractmethod
    def _move(self, db: Database, which: Which) -> int:
        """Write the rows of a slice anew; returns how many."""

    def _pick(self, db: Database, which: Which) -> int:
        db.run(f"{self.table}_pick", which)
        return int(db.execute(f"SELECT count(*) FROM {self.table}_picked").fetchall()[0][0])  # noqa: S608 a table's name

    def _exchange(self, db: Database, which: Which, picked: int) -> None:
        """Write the picked rows anew. Raises ChangedError where they are not those that are there."""
        if int(db.run(f"{self.table}_pick_delete", which).fetchall()[0][0]) != picked:
            raise ChangedError(f"{self.table} were changed while they were picked")
        db.run(f"{self.table}_pick_insert").fetchall()


class DayPacking(Packing):
    """Packs the days. They are picked while others write: of what is added up only the user may change."""

    table = "days"
    mark = "packed_until"
    step_rows = 40_000

    def _move(self, db: Database, which: Which) -> int:
        picked = self._pick(db, which)
        try:
            with self._store.exchanging(db):
                self._exchange(db, which, picked)
        except ChangedError:
            return 0  # they stay where they are, which costs time and nothing else
        return picked


class JobPacking(Packing):
    """Packs the runs that have ended. They are picked under the lock: accounting may tell any of them anew."""

    table = "jobs"
    mark = "jobs_packed_until"
    step_rows = 20_000

    def _move(self, db: Database, which: Which) -> int:
        with self._store.exchanging(db):
            picked = self._pick(db, which)
            self._exchange(db, which, picked)
        return picked


class JudgedPacking(Packing):
    """Packs what was judged, as far as all is judged. Late hours may remove any of it; new thresholds begin anew.

    Rows are wide: picking and writing them takes a second, so both are done in front of the lock, in the transaction
    that removes the old rows under it. DuckDB refuses that where another has removed one of them since it began.
    """

    table = "judged"
    mark = "judged_packed_until"
    stretch_s = 8 * DAY_S  # what is not packed yet is the slow part of a report
    step_rows = 10_000

    def steps(self, before: int) -> Iterator[int]:
        """Pack the stretches that end before the UTC second `before` and in which every run is judged."""
        with self._store.reader() as db:
            until = int(db.rows("judged_by_all")[0]["until"])
        yield from super().steps(min(before, until))

    def _move(self, db: Database, which: Which) -> int:
        try:
            return self._moved(db, which)
        except ChangedError:
            return 0  # they stay where they are, which costs time and nothing else

    def _moved(self, db: Database, which: Which) -> int:
        with contextlib.ExitStack() as held, db.transaction():
            picked = self._pick(db, which)
            db.run("judged_pick_insert").fetchall()
            held.enter_context(self._store.locked())  # let go after the commit
            try:
                db.run("judged_pick_delete").fetchall()
            except StoreError as error:
                raise ChangedError(str(error)) from error
        return picked
