"""Old hours become days, stored in the order of users: a step at a time, on a separate thread.

The sums are made on a separate cursor while ingest continues; the write lock is held only for the exchange.

Rows are appended in the order of time, so that each user's are in as many places as the year has days, and DuckDB reads
whole vectors. Packed, they are in one place for each stretch.
"""

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, StoreError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.units import DAY_S
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.hour_store import note_rolled
from gpuwaste.ledger.run_judging import HANG_LIMITS
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.table_parts import STRETCH_S

STEP_HOURS: Final = 40_000  # rows exchanged at a time: a fraction of a second under the lock
Which = Mapping[str, Any]
"""The parameters of a query: a stretch from_s to before to_s, and the first and the last of a slice of it."""
FIRST_S: Final = 30.0  # wait after the start, when agents and importer write most
_FAILED: Final = log_event.warning(
    "rollup-failed: cannot sum up old hours by day, retry later: {error}",
    "The store or its disk has an error. Reports are correct meanwhile.",
)
_DONE: Final = log_event.info("rollup-done: {rows} hours older than {days} days summed up by day")


class ChangedError(StoreError):
    """Rows were changed between reading and exchange: the exchange is skipped."""


class Rollup:
    """Rolls up one store; for one thread. `hang` are the ledger's limits of hang_ms (ledger/run_judging.py)."""

    def __init__(self, store: HubStore, hang: Mapping[str, float], step_hours: int = STEP_HOURS) -> None:
        self._store = store
        self._hang = dict(hang)
        self._step_hours = step_hours

    def steps(self, before: int) -> Iterator[int]:
        """Add up the due hours of days before the UTC second `before`; yields the number of hours after each step.

        Final hours of runs that accounting ended before then are due. Yielded hours are on disk. Raises StoreError.
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


class Packing(ABC):
    """Packs one table of a store; runs on the roll-up thread, since both move rows.

    A subclass has queries of its table's name: TABLE_first, TABLE_slices, TABLE_pick, TABLE_pick_delete and
    TABLE_pick_insert.
    """

    table: ClassVar[str]
    mark: ClassVar[str]  # UTC seconds: rows that began before then are packed
    stretch_s: ClassVar[int] = STRETCH_S
    step_rows: ClassVar[int]  # rows moved at a time: a fraction of a second under the lock

    def __init__(self, store: HubStore, step_rows: int = 0) -> None:
        self._store = store
        self._step_rows = step_rows or self.step_rows

    def steps(self, before: int) -> Iterator[int]:
        """Pack the stretches that end before the UTC second `before`; yields the rows moved by each step.

        An interrupted stretch starts again; rows that arrive late stay where they are appended. Raises StoreError.
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
            # A user with so many rows already fills whole vectors.
            if found["rows"] <= 2 * self._step_rows:
                with self._store.reader() as db:
                    moved = self._move(db, {**bounds, "first": found["first"], "last": found["last"]})
                yield moved  # the picked rows are released first: the caller pauses between steps

    @abstractmethod
    def _move(self, db: Database, which: Which) -> int:
        """Rewrite the rows of a slice; returns how many."""

    def _pick(self, db: Database, which: Which) -> int:
        db.run(f"{self.table}_pick", which)
        return int(db.execute(f"SELECT count(*) FROM {self.table}_picked").fetchall()[0][0])  # noqa: S608 a table's name

    def _exchange(self, db: Database, which: Which, picked: int) -> None:
        """Rewrite the picked rows. Raises ChangedError where the stored rows are no longer these."""
        if int(db.run(f"{self.table}_pick_delete", which).fetchall()[0][0]) != picked:
            raise ChangedError(f"{self.table} were changed while they were picked")
        db.run(f"{self.table}_pick_insert").fetchall()


class DayPacking(Packing):
    """Packs the days. They are picked while others write: only the user of a summed day can change."""

    table = "days"
    mark = "packed_until"
    step_rows = 40_000

    def _move(self, db: Database, which: Which) -> int:
        picked = self._pick(db, which)
        try:
            with self._store.exchanging(db):
                self._exchange(db, which, picked)
        except ChangedError:
            return 0  # the rows stay in place: reads are slower, nothing else
        return picked


class JobPacking(Packing):
    """Packs the runs that have ended. They are picked under the lock: accounting may update any of them."""

    table = "jobs"
    mark = "jobs_packed_until"
    step_rows = 20_000

    def _move(self, db: Database, which: Which) -> int:
        with self._store.exchanging(db):
            picked = self._pick(db, which)
            self._exchange(db, which, picked)
        return picked


class JudgedPacking(Packing):
    """Packs judged runs, up to where all runs are judged. Late hours may remove rows; new thresholds start again.

    Rows are wide: picking and writing them takes a second, so both are done before the lock is taken, in the
    transaction that removes the old rows under it. DuckDB refuses that where another one removed a row since it began.
    """

    table = "judged"
    mark = "judged_packed_until"
    stretch_s = 8 * DAY_S  # rows that are not packed yet are the slow part of a report
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
            return 0  # the rows stay in place: reads are slower, nothing else

    def _moved(self, db: Database, which: Which) -> int:
        with contextlib.ExitStack() as held, db.transaction():
            picked = self._pick(db, which)
            db.run("judged_pick_insert").fetchall()
            held.enter_context(self._store.locked())  # released after the commit
            try:
                db.run("judged_pick_delete").fetchall()
            except StoreError as error:
                raise ChangedError(str(error)) from error
        return picked


class Roller(Part):
    """Rolls up and packs, run by `worker`; any thread may set `days`."""

    late = True

    def __init__(self, store: HubStore, clock: Clock, days: int) -> None:
        self._store = store
        self._rollup = Rollup(store, HANG_LIMITS)
        packings: tuple[Packing, ...] = (DayPacking(store), JobPacking(store), JudgedPacking(store))
        self._packings = packings if store.packs else ()
        self._clock = clock
        self.days = days
        self.worker = Worker("rollup", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HubStore), parts.get(HostPorts).clock, parts.get(Config).hub.rollup_days)

    @property
    def reloads(self) -> Reloads:
        """The age at which hours are added up."""
        return {("hub.rollup_days",): lambda c: setattr(self, "days", c.hub.rollup_days)}

    def _turn(self) -> float:
        self.step(self.worker.stopping)
        return self._store.upkeep_s

    def step(self, stop: threading.Event) -> int:
        """Add up due hours, pack, and checkpoint the store; returns the number of hours. Raises no error of its own."""
        taken = self._roll(stop) if self.days > 0 else 0
        self._store.checkpoint()
        return taken

    def _roll(self, stop: threading.Event) -> int:
        before = self._clock.utc_s() - self.days * DAY_S
        taken = self._do(self._rollup.steps(before), stop)
        for packing in self._packings:
            self._do(packing.steps(before), stop)
        if taken:
            _DONE.log(rows=taken, days=self.days)
        return taken

    def _do(self, steps: Iterator[int], stop: threading.Event) -> int:
        """Run steps until `stop` is set, with pauses; returns the rows that they processed."""
        taken = 0
        began = time.monotonic()
        try:
            for rows in steps:
                taken += rows
                # Half of the time is left to others.
                if stop.is_set() or self._clock.wait(stop, time.monotonic() - began if rows else 0.0):
                    break
                began = time.monotonic()
        except GpuwasteError as error:
            _FAILED.log(error=error)
        return taken
