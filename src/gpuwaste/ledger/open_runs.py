"""Open runs, judged together once a minute while documents are requested, in memory next to the hub's store.

A document judges what has no stored judgement: runs that are open or ended minutes ago, and the parts of runs that the
window's edges cut. Planning and running these queries takes most of a page's time, and is the same for every reader.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import GpuwasteError, StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.run_judging import NO_RULES, Selection, judge_into
from gpuwaste.store.database import Database, query_text
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.store_changes import ChangedEnds

_NUMBERS: Final = count()
RUNS: Final = "judged_now"
PARTS: Final = "judged_parts"
"""Tables of a connection: runs judged for one document, and the parts inside its window of runs that an edge cuts."""
_SCOPE: Final = ("from_s", "to_s", "user", "users", "account", "clusters", "accounts", "reader")
_MOST: Final = 50_000  # runs that are judged together; if more are due, judging must catch up first
FRESH_S: Final = 60.0  # younger runs are not judged again: agents report every few minutes
OLD_S: Final = 180.0  # older snapshots are not used
LEAST_RUNS: Final = 1000  # below this each document judges its own: as fast, and with the newest data
_WINDOWS: Final = 8
_WINDOW_S: Final = 900.0  # a window that was not requested for so long is dropped
_PATIENCE_S: Final = 10.0
_NOT_TAKEN: Final = log_event.warning(
    "runs-not-shared: cannot judge open runs together, each report judges its own: {error}",
    "The store or its disk has an error, or the hub's memory is full. Reports are correct but slower.",
)

Window = tuple[int, int | None]
"""From and to, UTC seconds; None: the instant of the snapshot."""


class OutdatedError(GpuwasteError):
    """The snapshot no longer fits the store: judge from the store only."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """The table of parts of runs that ended by `until`, and the number of changes of ended runs before it was made."""

    table: str
    until: int
    number: int

    def stands(self, changed: ChangedEnds) -> bool:
        return changed.first_since(self.number) > self.until


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts inside a window of runs that its edges cut: those of ended runs, and the table of the others."""

    ended: _Ended
    others: str


@dataclass(frozen=True, slots=True)
class OpenRunSnapshot:
    """As of `now`: the runs that are open or ended after `until`, judged by `rules`, and parts of runs by window.

    All runs that ended by `until` are in table judged, as long as the store's own mark is not before that.
    """

    now: int
    rules: int
    until: int
    thresholds: str
    runs: int
    _table: str
    _parts: Mapping[Window, _Parts]
    _changed: ChangedEnds

    @property
    def windows(self) -> Collection[Window]:
        """The windows with parts in this snapshot."""
        return self._parts.keys()

    def check(self, rules: int | None, until: int, settings: LedgerSettings, to: int) -> None:
        """Raise OutdatedError where the rules in use, or the end of a window, do not fit these runs."""
        if rules != self.rules or until < self.until or settings.to_text() != self.thresholds or to > self.now:
            raise OutdatedError("the runs that were kept do not fit")

    def add_runs(self, db: Database, which: Mapping[str, Any]) -> None:
        """Add the runs of a selection to table RUNS."""
        _copy(db, self._table, RUNS, which)

    def add_parts(self, db: Database, which: Mapping[str, Any]) -> bool:
        """Add the parts of runs of a selection to table PARTS; returns False where the snapshot lacks them."""
        to = which["to_s"]
        parts = self._parts.get((which["from_s"], None if to == self.now else to))
        if parts is None or not parts.ended.stands(self._changed):
            return False
        for table in (parts.ended.table, parts.others):
            _copy(db, table, PARTS, which)
        return True


class OpenRunJudge:
    """Judges all due runs together. For one thread; its snapshots are for any thread."""

    def __init__(self, store: HubStore) -> None:
        self._store = store
        self._schema = f"runs{next(_NUMBERS)}"
        self._numbers = count()
        self._known: OpenRunSnapshot | None = None
        self._left: list[str] = []  # tables of the snapshot before: a reader may still use them
        with store.reader() as db:
            db.execute(f"ATTACH ':memory:' AS {self._schema}")

    def take(
        self, settings: LedgerSettings, now: int, windows: Collection[Window], least: int
    ) -> OpenRunSnapshot | None:
        """Judge again; None where nothing is judged yet, or fewer than `least` runs are due, or too many.

        Raises StoreError.
        """
        number = self._number()
        with self._store.reader() as db:
            with db.transaction():
                taken = self._taken(db, settings, now, least)
                parts = {} if taken is None else self._parts_of(db, taken, windows, settings, number)
            known = None if taken is None else replace(taken, _parts=parts)
            self._forget(db, known)
        self._known = known
        return known

    def _number(self) -> int:
        """Return how many changes the store has noted; all of them are committed."""
        with self._store.locked():
            return self._store.changed_ends.number

    def _taken(self, db: Database, settings: LedgerSettings, now: int, least: int) -> OpenRunSnapshot | None:
        standing = db.rows("rules_standing", {"thresholds": settings.to_text()})
        if not standing:
            return None
        rules, until = standing[0]["id"], standing[0]["judged_until"]
        runs = int(db.rows("kept_due", {"until": until})[0]["runs"])
        if not least <= runs <= _MOST:
            return None
        due = Selection(0, now + 1, rules=NO_RULES, judged_until=until)
        table = self._table(db, due, settings, now)
        return OpenRunSnapshot(now, rules, until, settings.to_text(), runs, table, {}, self._store.changed_ends)

    def _parts_of(
        self, db: Database, taken: OpenRunSnapshot, windows: Collection[Window], settings: LedgerSettings, number: int
    ) -> Mapping[Window, _Parts]:
        found = {}
        for window in windows:
            cut = Selection(window[0], taken.now if window[1] is None else window[1], edges=True)
            ended = self._ended(window, taken)
            if ended is None:
                table = self._table(db, replace(cut, ended_by=taken.until), settings, taken.now)
                ended = _Ended(table, taken.until, number)
            others = replace(cut, rules=NO_RULES, judged_until=ended.until)
            found[window] = _Parts(ended, self._table(db, others, settings, taken.now))
        return found

    def _ended(self, window: Window, taken: OpenRunSnapshot) -> _Ended | None:
        """Return the parts made before, if still valid: ended runs change only by corrections."""
        known = self._known
        if known is None or known.thresholds != taken.thresholds or window not in known.windows:
            return None
        ended = known._parts[window].ended  # noqa: SLF001 its own
        return ended if ended.stands(self._store.changed_ends) and ended.until <= taken.until else None

    def _table(self, db: Database, selection: Selection, settings: LedgerSettings, now: int) -> str:
        """Judge a selection into a new table."""
        table = f"{self._schema}.judged_{next(self._numbers)}"
        db.execute(query_text("kept_create").replace("kept_runs", table))
        judge_into(db, table, selection, settings, now)
        return table

    def _forget(self, db: Database, known: OpenRunSnapshot | None) -> None:
        """Drop the tables released in the previous turn; release those that are no longer used."""
        for table in self._left:
            db.execute(f"DROP TABLE IF EXISTS {table}")
        self._left = sorted(_tables(self._known) - _tables(known))


def _tables(known: OpenRunSnapshot | None) -> set[str]:
    if known is None:
        return set()
    parts = known._parts.values()  # noqa: SLF001 its own
    return {known._table} | {table for of in parts for table in (of.ended.table, of.others)}  # noqa: SLF001 its own


def _copy(db: Database, source: str, target: str, which: Mapping[str, Any]) -> None:
    """Add the rows of a selection in one table to another; the names are never user input."""
    text = query_text("kept_copy").replace("kept_runs", source).replace("judged_now", target)
    db.execute(text, {name: which[name] for name in _SCOPE})


class SharedRuns(Part):
    """Shares the newest snapshot. Thread-safe; `worker` judges."""

    def __init__(self, store: HubStore, settings: LedgerSettings, clock: Clock, least: int = LEAST_RUNS) -> None:
        """Set up; at least `least` runs must be due."""
        self._judge = OpenRunJudge(store)
        self._settings = settings
        self._clock = clock
        self._least = least
        self._lock = threading.Lock()
        self._known: OpenRunSnapshot | None = None
        self._taken_us: int | None = None
        self._asked = False
        self._windows: OrderedDict[Window, int] = OrderedDict()  # when each was last requested
        self._making = threading.Event()
        self._making.set()
        self.worker = Worker("shared-runs", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        part = cls(parts.get(HubStore), parts.get(Judging).standing, parts.get(HostPorts).clock)
        parts.get(Bus).subscribe(LedgerSettings, part.judge_by)
        return part

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next snapshot on. Thread-safe."""
        with self._lock:
            self._settings = settings
            self._known, self._taken_us = None, None

    def current(self, *windows: Window) -> OpenRunSnapshot | None:
        """Return the newest snapshot, and include the parts of these windows from the next one on.

        None where a document must judge its own runs. Callers wait while the first snapshot is made.
        """
        with self._lock:
            self._asked = True
            for window in windows:
                self._windows[window] = self._clock.mono_us()
                self._windows.move_to_end(window)
            while len(self._windows) > _WINDOWS:
                self._windows.popitem(last=False)
            known, age_s = self._known, self._age_s()
            due = self._due()
        if due:
            self.worker.wake()
        if age_s > OLD_S and not self._making.is_set():
            self._making.wait(_PATIENCE_S)
            with self._lock:
                known, age_s = self._known, self._age_s()
        return known if age_s <= OLD_S else None

    def take(self) -> OpenRunSnapshot | None:
        """Judge again. Raises StoreError."""
        with self._lock:
            since_us = self._clock.mono_us() - int(_WINDOW_S * 1e6)
            for window in [window for window, asked_us in self._windows.items() if asked_us < since_us]:
                del self._windows[window]
            settings, windows, self._asked = self._settings, list(self._windows), False
        known = self._judge.take(settings, self._clock.utc_s(), windows, self._least)
        with self._lock:
            if settings is self._settings:
                self._known, self._taken_us = known, self._clock.mono_us()
        return known

    def _due(self) -> bool:
        """Return whether documents are requested and the snapshot is too old or lacks a window."""
        known = self._known
        lacking = known is not None and not self._windows.keys() <= set(known.windows)
        return self._asked and (lacking or self._age_s() > FRESH_S)

    def _age_s(self) -> float:
        taken_us = self._taken_us
        return float("inf") if taken_us is None else (self._clock.mono_us() - taken_us) / 1e6

    def _turn(self) -> float | None:
        with self._lock:
            due = self._due()
        if due:
            self._making.clear()
            try:
                self.take()
            except StoreError as error:
                _NOT_TAKEN.log(error=error)
            finally:
                self._making.set()
        return None
