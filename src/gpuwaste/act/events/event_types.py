"""The types of the hub's documents on events: a page of the stream, the kinds, outlets, inlets, the quarantine."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, MaybeUtc, Utc

MAX_EVENTS: Final = 5000


class EventsAnswer(Struct, kw_only=True, frozen=True):
    """A page of the stream, within what the caller may see; ask again with `next` as `after`."""

    events: Annotated[list[Any], Meta(description="CloudEvents 1.0 in structured JSON mode, in order.")]
    next: Annotated[int, Meta(description="Last place in the stream that was searched.")]


class KindRow(Struct, kw_only=True, frozen=True):
    """A kind of event."""

    kind: str
    type: Annotated[str, Meta(description="The `type` of its events.")]
    about: str
    schema: Annotated[dict[str, Any], Meta(description="JSON Schema of its `data`.")]


class CatalogueDocument(Document, kw_only=True, frozen=True):
    """Every kind of event that the hub reports."""

    document: Literal["events"] = "events"
    schema: int = 1
    kinds: list[KindRow]


class OutletRow(Struct, kw_only=True, frozen=True):
    """The state of an outlet."""

    name: str
    way: Annotated[str, Meta(description="journal, kafka or webhook.")]
    kinds: Annotated[list[str], Meta(description="The kinds of events that it accepts.")]
    handed: Annotated[int, Meta(description="Last place in the stream that was delivered.")]
    behind: Annotated[int, Meta(description="Events not delivered yet, of all kinds.")]
    oldest: Annotated[int | None, Meta(description="Time of the oldest of them, UTC seconds; null: none.")]
    failures: Annotated[int, Meta(description="Failed attempts in a row.")]
    error: Annotated[str, Meta(description="Error of the last attempt; empty: it succeeded.")]
    refused: Annotated[int, Meta(description="Events that the receiver rejected; they are not sent again.")]


class RefusedEvent(Struct, kw_only=True, frozen=True):
    """An event that a receiver will never accept."""

    outlet: str
    seq: int
    id: str
    kind: str
    reason: str
    at: Utc


class OutletsDocument(Document, kw_only=True, frozen=True):
    """The outlets of the hub, and what their receivers have rejected."""

    document: Literal["outlets"] = "outlets"
    schema: int = 1
    generated: MaybeUtc
    outlets: list[OutletRow]
    refused: Annotated[list[RefusedEvent], Meta(description="The newest 100.")]


class InletAnswer(Struct, kw_only=True, frozen=True):
    """The outcome of the events of a request; none of them needs to be sent again."""

    accepted: int
    repeated: Annotated[int, Meta(description="Events that were received before, by source and id.")]
    quarantined: Annotated[int, Meta(description="Events that are not valid; the hub keeps them in quarantine.")]
    reasons: Annotated[list[str], Meta(description="Reasons for the first ten.")]


class InletRow(Struct, kw_only=True, frozen=True):
    """The state of an inlet; counts are since the hub's start."""

    name: str
    way: Annotated[str, Meta(description="kafka or webhook.")]
    kinds: Annotated[list[str], Meta(description="The kinds of events that it accepts.")]
    accepted: int
    repeated: int
    quarantined: int
    kept: Annotated[int, Meta(description="Quarantined events that the store has.")]
    refused: Annotated[int, Meta(description="Requests that were refused: forged, too large, too many.")]
    failures: Annotated[int, Meta(description="Failed attempts in a row to fetch events.")]
    error: Annotated[str, Meta(description="Error of the last attempt; empty: it succeeded.")]


class QuarantinedEvent(Struct, kw_only=True, frozen=True):
    """An invalid event from an inlet."""

    inlet: str
    at: Utc
    id: Annotated[str, Meta(description="As it was sent; empty: it could not be read.")]
    kind: Annotated[str, Meta(description="`type` as it was sent; empty: it could not be read.")]
    reason: str
    raw: Annotated[str, Meta(description="The beginning of what was sent.")]


class InletsDocument(Document, kw_only=True, frozen=True):
    """The inlets of the hub, and the events that they have quarantined."""

    document: Literal["inlets"] = "inlets"
    schema: int = 1
    generated: MaybeUtc
    inlets: list[InletRow]
    quarantine: Annotated[list[QuarantinedEvent], Meta(description="The newest 100.")]
