"""The types of what the hub says of events: a page of the stream, the catalogue, how outlets stand."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, MaybeUtc, Utc

MAX_EVENTS: Final = 5000


class EventsAnswer(Struct, kw_only=True, frozen=True):
    """A page of the stream, within what the caller may see; ask again with `next` as `after`."""

    events: Annotated[list[Any], Meta(description="CloudEvents 1.0 in structured JSON mode, in order.")]
    next: Annotated[int, Meta(description="The last place that was looked at.")]


class KindRow(Struct, kw_only=True, frozen=True):
    """A kind of event."""

    kind: str
    type: Annotated[str, Meta(description="The `type` of its events.")]
    about: str
    schema: Annotated[dict[str, Any], Meta(description="JSON Schema of its `data`.")]


class CatalogueDocument(Document, kw_only=True, frozen=True):
    """Every kind of event that the hub tells."""

    document: Literal["events"] = "events"
    schema: int = 1
    kinds: list[KindRow]


class OutletRow(Struct, kw_only=True, frozen=True):
    """How an outlet stands."""

    name: str
    way: Annotated[str, Meta(description="journal, kafka or webhook.")]
    kinds: Annotated[list[str], Meta(description="The kinds of events that it takes.")]
    handed: Annotated[int, Meta(description="The last place of the stream that was handed over.")]
    behind: Annotated[int, Meta(description="Events that wait for it, of all kinds.")]
    oldest: Annotated[int | None, Meta(description="When the first of them happened, UTC seconds; null: none waits.")]
    failures: Annotated[int, Meta(description="Attempts in a row that failed.")]
    error: Annotated[str, Meta(description="Why the last one failed; empty: it did not.")]
    refused: Annotated[int, Meta(description="Events that its receiver will never take.")]


class RefusedEvent(Struct, kw_only=True, frozen=True):
    """An event that a receiver will never take."""

    outlet: str
    seq: int
    id: str
    kind: str
    reason: str
    at: Utc


class OutletsDocument(Document, kw_only=True, frozen=True):
    """The outlets of the hub, and what their receivers have refused."""

    document: Literal["outlets"] = "outlets"
    schema: int = 1
    generated: MaybeUtc
    outlets: list[OutletRow]
    refused: Annotated[list[RefusedEvent], Meta(description="The newest 100.")]
