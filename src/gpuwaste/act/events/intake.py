"""Intake: checks the events of one inlet, stores the valid ones within its rates, and quarantines the others.

The input is not trusted: it can only become an event of the family site, about no run and no node, with a subject that
begins with site/, and with the hub's time. The id is made of inlet, source and the sender's id, so that a repeated
event is recognized.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpuwaste.act.events.inlet import InletFile
from gpuwaste.act.events.inlet_store import AsideEvent, InletStore, LogPlaces, SentRequest
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.codec import convert, problem
from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import decoded, storable, words_of
from gpuwaste.core.typed import decode, decoder
from gpuwaste.core.units import DAY_S, MINUTE_S
from gpuwaste.jobs.events.envelope import StoredEvent, event_id
from gpuwaste.jobs.events.event_kind import EventKind
from gpuwaste.jobs.events.kind_catalogue import PREFIX

MAX_EVENT: Final = 16 * 1024  # bytes
MAX_BATCH: Final = 100  # events of a request
MAX_RAW: Final = 2000  # characters kept of a quarantined event
_SUBJECT: Final = "site/"
_MAX_SUBJECT: Final = 200
_Word = Annotated[str, Meta(min_length=1, max_length=256)]
_ASIDE = log_event.warning(
    "inlet-quarantined: inlet {name} rejects {events} events, the first: {reason}",
    "`gpuwaste events status` lists them. Compare the sender with the fields of the kind in the inlet's file.",
)

RESULTS: Final = ("accepted", "repeated", "quarantined")


class EventBudget:
    """Two buckets that fill steadily; for the thread that holds the inlet's lock.

    A bucket holds what its time allows, and one batch may overdraw it: then nothing passes until it is filled again.
    """

    def __init__(self, per_minute: int, per_day: int, clock: Clock) -> None:
        self._clock = clock
        self._rates = (per_minute / MINUTE_S, per_day / DAY_S)
        self._most = (float(per_minute), float(per_day))
        self._left = list(self._most)
        self._at_us = clock.mono_us()

    def wait_s(self, events: int) -> float:
        """Return the seconds until so many events may arrive, 0 for now; a full bucket takes any number."""
        now_us = self._clock.mono_us()
        passed_s, self._at_us = (now_us - self._at_us) / 1e6, now_us
        waits = []
        for place, (rate, most) in enumerate(zip(self._rates, self._most, strict=True)):
            self._left[place] = min(most, self._left[place] + passed_s * rate)
            waits.append((min(events, most) - self._left[place]) / rate)
        return max(0.0, *waits)

    def spend(self, events: int) -> None:
        """Count events that arrived."""
        self._left = [left - events for left in self._left]


class SentEvent(msgspec.Struct, frozen=True):
    """The fields read from an event; other attributes of CloudEvents or extensions are ignored."""

    specversion: str
    id: _Word
    source: _Word
    type: _Word
    data: msgspec.Raw
    subject: Annotated[str, Meta(max_length=_MAX_SUBJECT)] | None = None
    time: Annotated[str, Meta(max_length=40)] | None = None
    datacontenttype: Annotated[str, Meta(max_length=100)] | None = None
    data_base64: Any | UnsetType = UNSET


class SiteReader:
    """Reads the events of one inlet; `kinds` are those that its file accepts."""

    def __init__(self, inlet: str, kinds: Mapping[str, EventKind]) -> None:
        self._inlet = inlet
        self._kinds = kinds
        self._decoder = decoder(SentEvent)

    def read(self, text: bytes, cluster: str, now_utc: int) -> StoredEvent | AsideEvent:
        """Return the event in the form of the stream, or why it is invalid."""
        if len(text) > MAX_EVENT:
            return set_aside(text, f"{len(text)} bytes: expected {MAX_EVENT} at most")
        try:
            sent = self._decoder.decode(text)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return set_aside(text, f"not a CloudEvent in JSON: {problem(error)}")
        try:
            return self._told(sent, cluster, now_utc)
        except ParseError as error:
            return set_aside(text, str(error), sent.id, sent.type)

    def _told(self, sent: SentEvent, cluster: str, now_utc: int) -> StoredEvent:
        name = sent.type.removeprefix(PREFIX)
        kind = self._kinds.get(name)
        if kind is None:
            raise ParseError(f"type {sent.type!r:.80}: this inlet accepts {', '.join(self._kinds)}"[:400])
        media = (sent.datacontenttype or "application/json").partition(";")[0].strip()
        if sent.specversion != "1.0" or sent.data_base64 is not UNSET or not media.endswith(("/json", "+json")):
            raise ParseError('expected specversion "1.0" and data in JSON')
        data = convert(_object(sent.data), dict[str, Any], "data")
        about = {"cluster": cluster, "inlet": self._inlet, "source": storable(sent.source)}
        known = convert(
            {**data, **about, "sent_id": storable(sent.id), "sent_time": sent.time or ""}, kind.data, "data"
        )
        subject = storable(f"{_SUBJECT}{sent.subject or self._inlet}")
        unique = f"{self._inlet}\0{sent.source}\0{sent.id}"
        text = msgspec.json.encode(known).decode()
        return StoredEvent(event_id(name, _SUBJECT, unique), name, subject, now_utc, text)


def texts_of(body: bytes) -> Iterator[bytes]:
    """Yield the JSON of each event of a request's body: one event, or an array of them. Raises ParseError."""
    if not body.lstrip().startswith(b"["):
        yield body
        return
    try:
        found = decode(body, list[msgspec.Raw])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ParseError(f"the body is not JSON: {problem(error)}") from error
    if len(found) > MAX_BATCH:
        raise ParseError(f"{len(found)} events: expected {MAX_BATCH} at most in a request")
    yield from map(bytes, found)


def set_aside(text: bytes, reason: str, sent_id: str = "", kind: str = "") -> AsideEvent:
    """Return what is kept of a quarantined event."""
    digest = hashlib.sha256(text).hexdigest()
    raw = storable(decoded(text[:MAX_RAW]))[:MAX_RAW]
    return AsideEvent(digest, storable(sent_id), storable(kind), words_of(reason), raw)


def _object(raw: msgspec.Raw) -> Any:
    try:
        return decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ParseError(f"data: {problem(error)}") from error


@dataclass(slots=True)
class InletState:
    """Events by outcome (RESULTS), rejected requests by reason, and the state of fetching."""

    events: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """The outcome of a batch; `reasons` are those of the quarantined events."""

    accepted: int
    repeated: int
    reasons: Sequence[str]


class Intake:
    """For any thread."""

    def __init__(self, file: InletFile, store: InletStore, cluster: Callable[[], str], clock: Clock) -> None:
        self.file = file
        self.state = InletState()
        self.store = store
        self._reader = SiteReader(file.name, file.kinds)
        self._cluster = cluster
        self._clock = clock
        self._budget = EventBudget(file.per_minute, file.per_day, clock)
        self._lock = threading.Lock()
        self.turn = threading.Lock()
        """Held while a request is taken: of two equal requests only one is stored."""

    def wait_s(self, events: int) -> float:
        """Return the seconds until so many events may arrive, 0 for now."""
        with self._lock:
            return self._budget.wait_s(events)

    def spend(self, events: int) -> float:
        """Count events that arrive now; return 0, or the seconds until they may, and then count nothing."""
        with self._lock:
            wait_s = self._budget.wait_s(events)
            if not wait_s:
                self._budget.spend(events)
            return wait_s

    def overdraw(self, events: int) -> None:
        """Count events that have arrived, even beyond the rates."""
        with self._lock:
            self._budget.spend(events)

    def knows(self, request: SentRequest) -> bool:
        """Tell whether a request was taken. Raises StoreError."""
        return self.store.knows(self.file.name, request)

    def take(
        self, texts: Sequence[bytes], places: LogPlaces | None = None, request: SentRequest | None = None
    ) -> IntakeResult:
        """Store events, together with how far the log was read, or the request they arrived in.

        Raises StoreError: then nothing was stored.
        """
        now = self._clock.utc_s()
        cluster = self._cluster()
        found = [self._reader.read(text, cluster, now) for text in texts]
        events = [one for one in found if isinstance(one, StoredEvent)]
        aside = [one for one in found if isinstance(one, AsideEvent)]
        new = self.store.take(self.file.name, events, aside, places, request)
        with self._lock:
            self.state.events.update(accepted=new, repeated=len(events) - new, quarantined=len(aside))
        if aside:
            _ASIDE.log(name=self.file.name, events=len(aside), reason=aside[0].reason)
        return IntakeResult(new, len(events) - new, [one.reason for one in aside])

    def refuse(self, reason: str) -> None:
        """Count a rejected request."""
        with self._lock:
            self.state.refused[reason] += 1
