"""KeptDays: sums of ended days in memory beside the hub's store, for views over a long time."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Any, Final

from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database
from gpuwaste.store.hub.changes import Touched
from gpuwaste.views.view_query import Window, days_text, used

MIN_DAYS: Final = 45
"""Shorter windows are counted as they are asked for."""
_SETTLED_S: Final = 2 * DAY_S  # runs of the last days still change all the time
_PHASE_S: Final = 900  # days begin at midnight of a zone: these are quarters of an hour apart
_MOST: Final = 4
_IDLE_S: Final = 3600  # days of a kind that nobody asked for as long make room for another; no answer takes that long
_NUMBERS: Final = count()
_RANGE: Final = 32  # days that are counted at a time: bounds the memory that it takes


@dataclass(slots=True)
class _KeptSums:
    """The sums of one kind of days: their first second, the clusters that are asked for, the zone of hours."""

    number: int
    asked: int  # when somebody looked last, UTC seconds
    days: dict[str, dict[int, int]] = field(
        default_factory=dict
    )  # by query: the beginning of a day, and its last change


class KeptDays:
    """Days that were counted once; a day with a run that changed since is counted again when it is asked for.

    For any thread. What the tables hold depends on nothing but the runs with a time in that day.
    """

    def __init__(self, db: Database, touched: Touched) -> None:
        self._name = f"kept{next(_NUMBERS)}"
        db.execute(f"ATTACH ':memory:' AS {self._name} (COMPRESS)")
        self._touched = touched
        self._kept: dict[tuple[Any, ...], _KeptSums] = {}
        self._numbers = count()
        self._left: list[str] = []  # tables that nobody reads any more
        self._lock = threading.Lock()

    def until(self, window: Window) -> int:
        """Return how far of a window days are kept; its start where none is."""
        if window.start % _PHASE_S or window.start < 0:
            return window.start
        days = (min(window.end, window.now - _SETTLED_S) - window.start) // DAY_S
        if days < MIN_DAYS or self._of(window) is None:
            return window.start
        return window.start + days * DAY_S

    def table(self, db: Database, sums: str, window: Window, known: Mapping[str, Any]) -> str:
        """Return the table in which query analytics.SUMS of these days is, up to date. Raises StoreError."""
        kept = self._of(window)
        if kept is None:
            raise AssertionError("asked for days that are not kept")
        table = self._table(sums, kept)
        with self._lock:
            while self._left:
                db.execute(f"DROP TABLE IF EXISTS {self._left.pop()}")
            known_days = kept.days.get(sums)
            sql, by_day = days_text(sums), {"grain": DAY_S, "coarse": DAY_S}
            if known_days is None:
                nothing = {**known, **by_day, "from": 0, "until": 0}
                db.execute(f"CREATE OR REPLACE TABLE {table} AS\n{sql}", used(sql, nothing))
                known_days = kept.days[sums] = {}
            for days in self._due(known_days, window.start, known["from"]):
                edges = {"from": min(days), "until": max(days) + DAY_S}
                with db.transaction():
                    db.execute(f"DELETE FROM {table} WHERE since >= $from AND since < $until", edges)  # noqa: S608 own names
                    db.execute(f"INSERT INTO {table} BY NAME\n{sql}", used(sql, {**known, **by_day, **edges}))
                known_days.update(days)
        return table

    def _table(self, sums: str, kept: _KeptSums) -> str:
        return f"{self._name}.{sums}_{kept.number}"

    def _of(self, window: Window) -> _KeptSums | None:
        """Return the days of a window's kind; None where as many kinds as are kept are others."""
        kind = window.start % DAY_S, tuple(window.clusters), window.utc_offset_s
        with self._lock:
            if kind not in self._kept:
                self._let_go(window.now)
                if len(self._kept) == _MOST:
                    return None
                self._kept[kind] = _KeptSums(next(self._numbers), window.now)
            kept = self._kept[kind]
            kept.asked = max(kept.asked, window.now)
            return kept

    def _let_go(self, now: int) -> None:
        for kind, kept in list(self._kept.items()):
            if len(self._kept) == _MOST and kept.asked < now - _IDLE_S:
                del self._kept[kind]
                self._left += [self._table(sums, kept) for sums in kept.days]

    def _due(self, known: Mapping[int, int], start: int, end: int) -> Iterator[dict[int, int]]:
        """Yield the days that are to be counted, some that follow each other at a time, with their last changes."""
        due = {}
        for day in range(start, end, DAY_S):
            last = self._touched.last(day, day + DAY_S)
            if known.get(day) != last:
                due[day] = last
        for _, found in groupby(enumerate(due), lambda place: (place[1] // DAY_S - place[0], place[0] // _RANGE)):
            yield {day: due[day] for _, day in found}
