"""InboxRoom: what a hub that stands by may leave in the lake's inbox for the hub that serves.

Batches wait there for a second or two, and longer while no hub serves. Where they wait longer than that, or there
are too many, senders keep their own: what waits in the inbox is in no report.
"""

from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.hub.group_commit import GroupCommit
from gpuwaste.store.hub.inbox import MOST_APPENDED, Arrival, InboxBacklog, InboxWriter, waiting
from gpuwaste.store.hub.lake_store import LakeReader
from gpuwaste.store.lake_database import LakeLocation

MOST_B: Final = 256 * 1024**2
MOST_AGE_S: Final = 600
_TAKES: Final = log_event.info("hub-takes-batches: this hub is a standby and accepts batches for the active hub")
_FULL: Final = log_event.warning(
    "hub-takes-no-batches: this hub is a standby and accepts no batches: {reason}",
    "The active hub does not merge the batches of other hubs: read its log, and run the same version on all hubs."
    " Agents keep their rows.",
)


class InboxRoom:
    """`put` for any thread; `look` for one. Nothing is accepted before the first `look`."""

    def __init__(self, location: LakeLocation, store: LakeReader, clock: Clock) -> None:
        """Open the inbox of a store that is only read. Raises StoreError."""
        self._store = store
        self._clock = clock
        self._writer = InboxWriter(location)
        self._commits = GroupCommit(self._writer.append, self._committed, MOST_APPENDED)
        self._said: str | None = None
        self.takes = False
        self.batches = 0
        """How many batches this hub has put there."""
        self.waiting = InboxBacklog()
        """What waited at the last `look`."""

    def look(self) -> None:
        """Find out whether there is room. Raises StoreError."""
        with self._store.reader() as db:
            self.waiting = waiting(db)
        reason = self._full(self.waiting)
        self.takes = not reason
        if reason != self._said:
            self._said = reason
            _FULL.log(reason=reason) if reason else _TAKES.log()

    def put(self, batch: Arrival) -> None:
        """Put a batch; it is committed when this returns. Raises StoreError."""
        self._commits.put([batch])

    def close(self) -> None:
        """Put no more batches: one in progress fails, or was committed."""
        self.takes = False
        self._writer.close()

    def _committed(self, batches: int) -> None:
        self.batches += batches

    def _full(self, found: InboxBacklog) -> str:
        if not found.folds:
            return "the active hub's version does not merge them"
        if found.size_b > MOST_B:
            return f"more than {MOST_B // 1024**2} MiB of batches are not merged"
        age_s = 0 if found.oldest_us is None else (self._clock.utc_us() - found.oldest_us) // 1_000_000
        return f"no batch was merged for more than {MOST_AGE_S} s" if age_s > MOST_AGE_S else ""
