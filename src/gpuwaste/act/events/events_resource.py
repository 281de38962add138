"""The stream of events as CloudEvents, its catalogue, and the state of outlets and inlets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from gpuwaste.act.events.event_text import inlets_text, outlets_text, quarantine_text
from gpuwaste.act.events.event_types import (
    MAX_EVENTS,
    CatalogueDocument,
    EventsAnswer,
    InletsDocument,
    KindRow,
    OutletsDocument,
)
from gpuwaste.core.fields import Number
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.events.kind_catalogue import PREFIX, catalogue
from gpuwaste.show.layout import Look
from gpuwaste.show.resource import NoQuestion, ReadCommand, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.act.events.event_service import EventReads


@dataclass(frozen=True)
class EventsQuestion:
    """After which position, how many, and of which kinds: comma-separated patterns."""

    after: Number = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS)] = 1000
    kinds: Annotated[str, Meta(max_length=1000)] = ""


def _events(reading: Reading) -> "EventReads":
    from gpuwaste.act.events.event_service import EventReads

    return reading.get(EventReads)


def page(reading: Reading, scope: Scope, question: EventsQuestion) -> bytes:
    """Return events after a place in the stream: of the caller's runs; to operators all."""
    return _events(reading).page(scope, question.after, question.limit, question.kinds)


def kinds(_: Reading, __: Scope, ___: NoQuestion) -> CatalogueDocument:
    """Return every kind of event with the JSON Schema of its data."""
    return catalogue_document()


def outlets(reading: Reading, scope: Scope, _: NoQuestion) -> OutletsDocument:
    """Return the state of the outlets, and the events that their receivers have rejected; for operators."""
    return _events(reading).outlets(scope)


def standing(reading: Reading, scope: Scope, _: NoQuestion) -> InletsDocument:
    """Return the state of the inlets, and the events that they have quarantined; for operators."""
    from gpuwaste.act.events.inlet_parts import InletParts

    return reading.get(InletParts).document(scope)


def catalogue_document() -> CatalogueDocument:
    """Return every kind of this version with its schema."""
    kinds = [
        KindRow(kind=kind.name, type=PREFIX + kind.name, about=kind.about, schema=kind.schema())
        for kind in catalogue().values()
    ]
    return CatalogueDocument(kinds=kinds)


def _command(action: str, text: Callable[[Any, Look], str], about: str) -> ReadCommand[Any]:
    return ReadCommand(text=text, action=action, about=about, forms=False)


RESOURCES = (
    Resource(path="/v1/events", question=EventsQuestion, document=EventsAnswer, read=page, standby=True),
    Resource(path="/v1/events/kinds", question=NoQuestion, document=CatalogueDocument, read=kinds, standby=True),
    Resource(
        path="/v1/outlets",
        question=NoQuestion,
        document=OutletsDocument,
        read=outlets,
        commands=[_command("outlets", outlets_text, "status of the hub's outlets (operators)")],
    ),
    Resource(
        path="/v1/inlets",
        question=NoQuestion,
        document=InletsDocument,
        read=standing,
        commands=[
            _command("inlets", inlets_text, "status of the hub's inlets (operators)"),
            _command("quarantine", quarantine_text, "events that inlets rejected, and why (operators)"),
        ],
    ),
)
