"""Changes by commits to the hub's store, in memory, to invalidate results that were computed before.

The records start empty with each process that opens the store.
"""

import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from gpuwaste.core.units import HOUR_S

_MOST: Final = 10_000
Times = tuple[int, int | None, int | None]
"""When a run was submitted, started and ended, UTC seconds."""
Run = tuple[str, int, int]
"""A run's key."""


@dataclass(slots=True)
class Changes:
    """The changes during a computation: runs by their keys, and all that ended at `from_end` or later."""

    runs: set[Run] = field(default_factory=set)
    from_end: float = math.inf

    def touches(self, run: Run, end: int) -> bool:
        """Return whether results for a run are out of date."""
        return run in self.runs or end >= self.from_end


class ChangedEnds:
    """Numbered changes, UTC seconds; the oldest are dropped. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[float] = []
        self._forgotten = 0

    @property
    def number(self) -> int:
        """The number of changes so far."""
        with self._lock:
            return self._forgotten + len(self._ends)

    def note(self, from_end: float) -> None:
        """Record a change of runs that ended at `from_end` or later; call it before the change is committed."""
        with self._lock:
            self._ends.append(from_end)
            if len(self._ends) > _MOST:
                del self._ends[: _MOST // 2]
                self._forgotten += _MOST // 2

    def first_since(self, number: int) -> float:
        """Return the first end that may have changed since there were `number` changes; infinity for none."""
        with self._lock:
            if number < self._forgotten:
                return -math.inf
            return min(self._ends[number - self._forgotten :], default=math.inf)


class Touched:
    """Numbers the changes of runs, and keeps the last of each hour in which a run was submitted, started or ended.

    For any thread.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._hours: dict[int, int] = {}

    def note(self, runs: Iterable[Times]) -> None:
        """Record changed runs by their times before and after, once the change is committed."""
        hours = {time // HOUR_S for times in runs for time in times if time is not None}
        number = next(self._numbers)
        for hour in hours:
            self._hours[hour] = number

    def last(self, start: int, end: int) -> int:
        """Return the number of the last change of a run with a time in [start, end), extended to full hours.

        Two changes never have the same number.
        """
        hours = self._hours
        return max((hours.get(hour, 0) for hour in range(start // HOUR_S, -(-end // HOUR_S))), default=0)
