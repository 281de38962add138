"""ChangedEnds: from which end on ended runs changed with each commit, for whoever keeps what was computed of them."""

import math
import threading
from typing import Final

_MOST: Final = 10_000


class ChangedEnds:
    """Numbered notes, UTC seconds; the oldest are forgotten. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: list[float] = []
        self._forgotten = 0

    @property
    def number(self) -> int:
        """How many changes there have been."""
        with self._lock:
            return self._forgotten + len(self._ends)

    def note(self, from_end: float) -> None:
        """Note a change of runs that ended at `from_end` or later; call it before the change is committed."""
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
