"""Events of other systems, as inlets get them: CloudEvents 1.0 in structured JSON mode, checked before they are taken.

What comes in is not trusted: it can only become an event of the family site, about no run and no node, with a subject
that begins with site/, and with the hub's time. The id is made of inlet, source and the sender's id, so what is sent
again is known again.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gpuwaste.act.events.inlet_store import AsideEvent
from gpuwaste.core.codec import convert, problem
from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import decoded, storable, words_of
from gpuwaste.core.typed import decode, decoder
from gpuwaste.jobs.events.catalogue import PREFIX
from gpuwaste.jobs.events.envelope import event_id
from gpuwaste.jobs.events.event_kind import EventKind
from gpuwaste.jobs.events.stored_event import StoredEvent

MAX_EVENT: Final = 16 * 1024  # bytes
MAX_BATCH: Final = 100  # events of a request
MAX_RAW: Final = 2000  # characters of what is kept of an event that was not taken
_SUBJECT: Final = "site/"
_MAX_SUBJECT: Final = 200
_Word = Annotated[str, Meta(min_length=1, max_length=256)]


class SentEvent(msgspec.Struct, frozen=True):
    """What is read of an event; attributes that CloudEvents or extensions add are left out."""

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
    """Reads what one inlet gets; `kinds` are those that its file takes."""

    def __init__(self, inlet: str, kinds: Mapping[str, EventKind]) -> None:
        self._inlet = inlet
        self._kinds = kinds
        self._decoder = decoder(SentEvent)

    def read(self, text: bytes, cluster: str, now_utc: int) -> StoredEvent | AsideEvent:
        """Return the event as the stream takes it, or why it cannot be one."""
        if len(text) > MAX_EVENT:
            return set_aside(text, f"{len(text)} bytes: expected {MAX_EVENT} at most")
        try:
            sent = self._decoder.decode(text)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            return set_aside(text, f"no CloudEvent in JSON: {problem(error)}")
        try:
            return self._told(sent, cluster, now_utc)
        except ParseError as error:
            return set_aside(text, str(error), sent.id, sent.type)

    def _told(self, sent: SentEvent, cluster: str, now_utc: int) -> StoredEvent:
        name = sent.type.removeprefix(PREFIX)
        kind = self._kinds.get(name)
        if kind is None:
            raise ParseError(f"type {sent.type!r:.80}: this inlet takes {', '.join(self._kinds)}"[:400])
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
        raise ParseError(f"the body is no JSON: {problem(error)}") from error
    if len(found) > MAX_BATCH:
        raise ParseError(f"{len(found)} events: expected {MAX_BATCH} at most in a request")
    yield from map(bytes, found)


def set_aside(text: bytes, reason: str, sent_id: str = "", kind: str = "") -> AsideEvent:
    """Return what is kept of an event that cannot be taken."""
    digest = hashlib.sha256(text).hexdigest()
    raw = storable(decoded(text[:MAX_RAW]))[:MAX_RAW]
    return AsideEvent(digest, storable(sent_id), storable(kind), words_of(reason), raw)


def _object(raw: msgspec.Raw) -> Any:
    try:
        return decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ParseError(f"data: {problem(error)}") from error
