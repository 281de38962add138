"""InletStore: events of inlets, quarantined ones, and how far a log was read: in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from gpuwaste.core.clock import Clock
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import append_told
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

MOST_ASIDE: Final = 1000  # events that an inlet keeps in quarantine
_MARK: Final = "inlet:"
_LOG: Final = "log"


@dataclass(frozen=True, slots=True)
class AsideEvent:
    """A quarantined event; `digest` is the SHA-256 of its bytes, `raw` their beginning as text."""

    digest: str
    sent_id: str
    kind: str
    reason: str
    raw: str


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A signed request: SHA-256 of the signed bytes, and the last UTC second in which its signature is accepted."""

    digest: str
    until_utc: int


@dataclass(frozen=True, slots=True)
class LogPlaces:
    """How far a log with partitions was read: the next offset of each, and the id number of the log (0: none)."""

    log: int
    next: Mapping[int, int]


class InletStore:
    """The data of inlets in a hub's store; threads share it as they share the store."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def take(
        self,
        inlet: str,
        events: Sequence[StoredEvent],
        aside: Sequence[AsideEvent],
        places: LogPlaces | None = None,
        request: SentRequest | None = None,
    ) -> int:
        """Store all events and the request, or nothing; return how many events are new.

        Raises StoreError.
        """
        now = self._clock.utc_s()
        with self._store.writing() as db:
            new = append_told(db, events, now) if events else 0
            if aside:
                rows = [{"no": no, "inlet": inlet, "at_utc": now, **asdict(one)} for no, one in enumerate(aside)]
                db.run("inlet_quarantine_add", {"rows": to_json(rows)})
                db.run("inlet_quarantine_bound", {"inlet": inlet, "most": MOST_ASIDE})
            if places is not None:
                marks = {_LOG: places.log} | {str(number): place for number, place in places.next.items()}
                for name, value in marks.items():
                    db.run("mark_set", {"key": f"{_MARK}{inlet}:{name}", "value": value}).fetchall()
            if request is not None:
                db.run("inlet_requests_forget", {"now": now}).fetchall()
                values = {"inlet": inlet, "digest": request.digest, "until": request.until_utc}
                db.run("inlet_request_add", values).fetchall()
        return new

    def knows(self, inlet: str, request: SentRequest) -> bool:
        """Return whether an inlet has taken a request. Raises StoreError."""
        with self._store.reader() as db:
            return bool(db.rows("inlet_request_known", {"inlet": inlet, "digest": request.digest}))

    def places(self, inlet: str) -> LogPlaces | None:
        """Return how far an inlet has read, None if it is new. Raises StoreError."""
        prefix = f"{_MARK}{inlet}:"
        with self._store.reader() as db:
            found = {
                row["key"].removeprefix(prefix): int(row["value"]) for row in db.rows("marks_under", {"prefix": prefix})
            }
        log = found.pop(_LOG, None)
        return None if log is None else LogPlaces(log, {int(name): value for name, value in found.items()})

    def aside(self, limit: int) -> list[dict[str, Any]]:
        """Return the events that were quarantined last, the newest first. Raises StoreError."""
        with self._store.reader() as db:
            return db.rows("inlet_quarantine_newest", {"limit": limit})

    def aside_counts(self) -> dict[str, int]:
        """Return how many events each inlet has in quarantine. Raises StoreError."""
        with self._store.reader() as db:
            return {row["inlet"]: int(row["events"]) for row in db.rows("inlet_quarantine_counts")}
