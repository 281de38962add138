"""EventStore: events with their data, and events that outlets could not deliver, in the hub's store."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.text import storable
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.job_event import HistoryEvent
from gpuwaste.jobs.run_store import history_events
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

MAX_DATA: Final = 256 * 1024  # characters of an event's data
_SAME_S: Final = 3 * DAY_S  # how long before the oldest new event the stored events are searched for the same id
_MARK: Final = "outlet:"
VERDICT: Final = "verdict/"  # and its id: the subject of an event without data, whose data is read from the verdict
_VERDICT_FIELDS: Final = tuple(field.name for field in fields(Verdict))
DeadLetter = tuple[int, str, str, str]
"""An event that an outlet gave up: its seq, id and kind, and the reason."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The events after a position in the stream: their number, and when the first happened, UTC seconds."""

    events: int
    first_utc: int | None


@dataclass(frozen=True, slots=True)
class StreamPage:
    """Events in order, and the seq up to which there are no others."""

    events: Sequence[StoredEvent | HistoryEvent]
    until: int


class EventStore:
    """The stream of a hub's store; threads share it as they share the store."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def tell(self, events: Sequence[StoredEvent]) -> int:
        """Append events that are not stored yet; return how many are new."""
        if not events:
            return 0
        with self._store.writing() as db:
            return append_told(db, events, self._clock.utc_s())

    def page(self, after: int, limit: int) -> StreamPage:
        """Return the events whose seq is greater than `after`, up to `limit` of each table, in order."""
        # The tables are read one after the other: events that arrive meanwhile belong to the next page.
        until = self.last(after)
        if until == after:
            return StreamPage((), after)
        with self._store.reader() as db:
            rows = db.rows("events_told_page", {"after": after, "limit": limit})
            said = [row["subject"].removeprefix(VERDICT) for row in rows if not row["data"]]
            verdicts = {row["id"]: row for row in db.rows("verdicts_of_ids", {"ids": said})} if said else {}
        runs = history_events(self._store, after, limit)
        for found, last in ((rows, rows[-1]["seq"] if rows else 0), (runs, runs[-1].seq if runs else 0)):
            until = min(until, last) if len(found) == limit else until
        told = [event for row in rows if (event := _told(row, verdicts)) is not None]
        both: list[StoredEvent | HistoryEvent] = [*runs, *told]
        return StreamPage(sorted((event for event in both if event.seq <= until), key=_seq), until)

    def behind(self, after: int) -> Behind:
        """Return how many events follow a position, and the time of the first."""
        with self._store.reader() as db:
            row = db.rows("events_behind", {"after": after})[0]
        return Behind(int(row["events"]), row["first_utc"])

    def last(self, after: int) -> int:
        """Return the last position of the stream; `after` where nothing follows it."""
        with self._store.reader() as db:
            return int(db.rows("events_last", {"after": after})[0]["last"])

    def told_since(self, kinds: Collection[str], since: int, limit: int) -> list[dict[str, Any]]:
        """Return kind, subject and data of the events of some kinds since a UTC second, the oldest first."""
        with self._store.reader() as db:
            return db.rows("events_told", {"kinds": sorted(kinds), "since": since, "limit": limit})

    def last_told(self, kinds: Collection[str], field: str) -> str:
        """Return a field of the newest event of some kinds, "" where there is none."""
        with self._store.reader() as db:
            rows = db.rows("event_last", {"kinds": sorted(kinds)})
        return str(json.loads(rows[0]["data"])[field]) if rows else ""

    def place(self, outlet: str) -> int | None:
        """Return the last event that an outlet has delivered, None for a new outlet."""
        return self._store.mark(_MARK + outlet)

    def handed(self, outlet: str, seq: int, dead: Iterable[DeadLetter] = ()) -> None:
        """Store an outlet's position, together with the events that it gives up."""
        now = self._clock.utc_s()
        rows = [
            {"outlet": outlet, "seq": place, "id": id_, "kind": kind, "reason": storable(reason), "at_utc": now}
            for place, id_, kind, reason in dead
        ]
        with self._store.writing() as db:
            if rows:
                db.run("dead_letters_add", {"rows": to_json(rows)})
            db.run("mark_set", {"key": _MARK + outlet, "value": seq}).fetchall()

    def dead(self, limit: int) -> list[dict[str, Any]]:
        """Return the latest events that outlets gave up, the newest first."""
        with self._store.reader() as db:
            return db.rows("dead_letters_newest", {"limit": limit})

    def dead_counts(self) -> dict[str, int]:
        """Return how many events each outlet has given up."""
        with self._store.reader() as db:
            return {row["outlet"]: int(row["events"]) for row in db.rows("dead_letters_count")}


def _seq(event: StoredEvent | HistoryEvent) -> int:
    return event.seq


def _told(row: Mapping[str, Any], verdicts: Mapping[str, Mapping[str, Any]]) -> StoredEvent | None:
    """Return an event of table told_events; None for a verdict's event whose verdict is no longer kept."""
    if not row["data"]:
        verdict = verdicts.get(row["subject"].removeprefix(VERDICT))
        if verdict is None:
            return None
        known = {name: verdict[name] for name in _VERDICT_FIELDS}
        known |= {name: json.loads(verdict[name]) for name in ("quantiles", "shadow")}
        row = {**row, "data": json.dumps(known), "user": verdict["user"], "account": verdict["account"]}
    run = RunKey(row["cluster"], row["job_id"], row["run_start"]) if row["job_id"] else None
    text = {name: row[name] for name in ("id", "kind", "subject", "at_utc", "data", "user", "account", "seq")}
    return StoredEvent(**text, run=run)


def append_told(db: Database, events: Sequence[StoredEvent], now: int) -> int:
    """Append events in the transaction that changes what they report; return how many are new."""
    rows = [_row(no, event) for no, event in enumerate(events)]
    since = min(now, *(event.at_utc for event in events)) - _SAME_S
    return len(db.run("events_tell", {"rows": to_json(rows), "since": since}).fetchall())


def _row(number: int, event: StoredEvent) -> dict[str, Any]:
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
