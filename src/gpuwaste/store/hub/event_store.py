"""EventStore: events that carry their data, and what outlets could not hand over, in the hub's store."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.job_event import HistoryEvent
from gpuwaste.core.run import RunKey
from gpuwaste.core.text import storable
from gpuwaste.core.told_event import ToldEvent
from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

MAX_DATA: Final = 256 * 1024  # characters of an event's data
_SAME_S: Final = 3 * DAY_S  # an id is looked for among the events since so long before the oldest of those to tell
_MARK: Final = "outlet:"
DeadLetter = tuple[int, str, str, str]
"""An event that an outlet gives up: its seq, id and kind, and the reason."""


@dataclass(frozen=True, slots=True)
class Behind:
    """What comes after a place in the stream: how many events, when the first happened (UTC s), and the last seq."""

    events: int
    first_utc: int | None
    last: int


class EventStore:
    """The stream of a hub's store; threads share it as they share the store."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def tell(self, events: Sequence[ToldEvent]) -> int:
        """Append events that were not told before; returns how many are new."""
        if not events:
            return 0
        with self._store.writing() as db:
            return tell(db, events, self._now())

    def page(self, after: int, limit: int) -> list[ToldEvent | HistoryEvent]:
        """Return up to `limit` events whose seq is greater than `after`, in order."""
        # The tables are read one after the other: what comes meanwhile is of the next page.
        last = self.behind(after).last
        with self._store.reader() as db:
            told = [_told(row) for row in db.rows("events_told_page", {"after": after, "limit": limit})]
        both: list[ToldEvent | HistoryEvent] = [*self._store.history(after, limit), *told]
        return sorted((event for event in both if event.seq <= last), key=_seq)[:limit]

    def behind(self, after: int) -> Behind:
        """Return what comes after a place."""
        with self._store.reader() as db:
            row = db.rows("events_behind", {"after": after})[0]
        return Behind(int(row["events"]), row["first_utc"], int(row["last"]))

    def told_since(self, kinds: Collection[str], since: int, limit: int) -> list[dict[str, Any]]:
        """Return kind, subject and data of the events of some kinds since a UTC second, the oldest first."""
        with self._store.reader() as db:
            return db.rows("events_told", {"kinds": sorted(kinds), "since": since, "limit": limit})

    def last_told(self, kind: str, field: str) -> str:
        """Return a field of the newest event of a kind, "" where there is none."""
        with self._store.reader() as db:
            rows = db.rows("event_last", {"kind": kind})
        return str(json.loads(rows[0]["data"])[field]) if rows else ""

    def place(self, outlet: str) -> int | None:
        """Return the last event that an outlet has handed over, None where it is new."""
        return self._store.mark(_MARK + outlet)

    def handed(self, outlet: str, seq: int, dead: Iterable[DeadLetter] = ()) -> None:
        """Note how far an outlet is, together with the events that it gives up."""
        now = self._now()
        rows = [
            {"outlet": outlet, "seq": place, "id": id_, "kind": kind, "reason": storable(reason), "at_utc": now}
            for place, id_, kind, reason in dead
        ]
        with self._store.writing() as db:
            if rows:
                db.run("dead_letters_add", {"rows": to_json(rows)})
            db.run("mark_set", {"key": _MARK + outlet, "value": seq}).fetchall()

    def dead(self, limit: int) -> list[dict[str, Any]]:
        """Return the events that outlets gave up last, the newest first."""
        with self._store.reader() as db:
            return db.rows("dead_letters_newest", {"limit": limit})

    def dead_counts(self) -> dict[str, int]:
        """Return how many events each outlet has given up."""
        with self._store.reader() as db:
            return {row["outlet"]: int(row["events"]) for row in db.rows("dead_letters_count")}

    def _now(self) -> int:
        return self._clock.utc_us() // 1_000_000


def _seq(event: ToldEvent | HistoryEvent) -> int:
    return event.seq


def _told(row: Mapping[str, Any]) -> ToldEvent:
    run = RunKey(row["cluster"], row["job_id"], row["run_start"]) if row["job_id"] else None
    text = {name: row[name] for name in ("id", "kind", "subject", "at_utc", "data", "user", "account", "seq")}
    return ToldEvent(**text, run=run)


def tell(db: Database, events: Sequence[ToldEvent], now: int) -> int:
    """Append events in the transaction of what they tell of; returns how many are new."""
    rows = [_row(no, event) for no, event in enumerate(events)]
    since = min(now, *(event.at_utc for event in events)) - _SAME_S
    return len(db.run("events_tell", {"rows": to_json(rows), "since": since}).fetchall())


def _row(number: int, event: ToldEvent) -> dict[str, Any]:
    if len(event.data) > MAX_DATA:
        raise ValueError(
            f"event {event.kind} of {event.subject}: {len(event.data)} characters of data, {MAX_DATA} at most"
        )
    run = event.run
    return {
        "no": number,
        "kind": event.kind,
        "cluster": storable(run.cluster) if run else "",
        "job_id": run.job_id if run else 0,
        "run_start": run.start if run else 0,
        "at_utc": event.at_utc,
        "id": event.id,
        "subject": storable(event.subject),
        "data": storable(event.data),
    }
