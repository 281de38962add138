"""The types of what the hub says of inlets: what became of a request, how they stand, what is set aside."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, MaybeUtc, Utc


class InletAnswer(Struct, kw_only=True, frozen=True):
    """What became of the events of a request; none of them needs to be sent again."""

    accepted: int
    repeated: Annotated[int, Meta(description="Events that were received before, by source and id.")]
    quarantined: Annotated[int, Meta(description="Events that are not valid; the hub keeps them in quarantine.")]
    reasons: Annotated[list[str], Meta(description="Why, of the first ten.")]


class InletRow(Struct, kw_only=True, frozen=True):
    """How an inlet stands; counts are since the hub's start."""

    name: str
    way: Annotated[str, Meta(description="kafka or webhook.")]
    kinds: Annotated[list[str], Meta(description="The kinds of events that it takes.")]
    accepted: int
    repeated: int
    quarantined: int
    kept: Annotated[int, Meta(description="Quarantined events that the store has.")]
    refused: Annotated[int, Meta(description="Requests that were refused: forged, too large, too many.")]
    failures: Annotated[int, Meta(description="Attempts in a row to fetch events that failed.")]
    error: Annotated[str, Meta(description="Why the last one failed; empty: it did not.")]


class QuarantinedEvent(Struct, kw_only=True, frozen=True):
    """An event that came by an inlet and is not valid."""

    inlet: str
    at: Utc
    id: Annotated[str, Meta(description="As it was sent; empty: it could not be read.")]
    kind: Annotated[str, Meta(description="`type` as it was sent; empty: it could not be read.")]
    reason: str
    raw: Annotated[str, Meta(description="The beginning of what was sent.")]


class InletsDocument(Document, kw_only=True, frozen=True):
    """The inlets of the hub, and the events that they have set aside."""

    document: Literal["inlets"] = "inlets"
    schema: int = 1
    generated: MaybeUtc
    inlets: list[InletRow]
    quarantine: Annotated[list[QuarantinedEvent], Meta(description="The newest 100.")]
