"""What was told as open and not yet as closed: kept in memory, found again in the stream after a restart."""

from collections.abc import Mapping
from typing import Any

from gpuwaste.core.typed import decode
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.events.event_store import EventStore

_BACK_S = 7 * DAY_S
_MOST = 200_000


class Open:
    """Subjects that are open, each with a number of the source's own."""

    def __init__(self, events: EventStore, opens: str, closes: str, number: str = "heard_utc") -> None:
        """Take the kinds that open and close, and the field of the data that is kept."""
        self._events = events
        self._kinds = (opens, closes)
        self._number = number
        self._known: dict[str, int] | None = None

    def subjects(self, now: int) -> Mapping[str, int]:
        """Return what is open. Raises StoreError."""
        if self._known is None:
            closes = self._kinds[1]
            found: dict[str, int] = {}
            for row in self._events.told_since(self._kinds, now - _BACK_S, _MOST):
                if row["kind"] == closes:
                    found.pop(row["subject"], None)
                else:
                    data: dict[str, Any] = decode(row["data"])
                    found[row["subject"]] = int(data[self._number])
            self._known = found
        return self._known

    def replace(self, subjects: Mapping[str, int]) -> None:
        """Note what is open now."""
        self._known = dict(subjects)
