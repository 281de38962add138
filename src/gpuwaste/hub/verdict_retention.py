"""VerdictRetention: deletes old verdicts and counts what is kept, now and then, in the importer's loop."""

from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.store.hub.verdict_store import VerdictStore

EVERY_S: Final = 600.0
_REMOVED: Final = log_event.info("verdicts-removed: {rows} verdicts older than {days} days deleted")


class VerdictRetention:
    """One thread calls `step`; `counts` may be read by any."""

    def __init__(self, store: VerdictStore, clock: Clock, days: int) -> None:
        self._store = store
        self._clock = clock
        self.days = days
        self._next_us = 0
        self.counts: dict[tuple[str, bool], int] = {}  # by action and whether a run has told the token

    def step(self) -> None:
        """Do what is due. Raises StoreError."""
        if self._clock.mono_us() < self._next_us:
            return
        removed = self._store.prune(self.days)
        if removed:
            _REMOVED.log(rows=removed, days=self.days)
        self.counts = self._store.counts()
        self._next_us = self._clock.mono_us() + int(EVERY_S * 1e6)
