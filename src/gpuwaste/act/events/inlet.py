"""Inlet: where events of other systems come from; a file in inlets/ is one way: they are sent here, or fetched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gpuwaste.act.events.inlet_store import LogPlaces, SentRequest
from gpuwaste.core.errors import GpuwasteError


class InletDownError(GpuwasteError):
    """Nothing could be fetched now; the events wait where they are."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Events as they were sent, the places after them, and what the reader of the hub's log should know."""

    texts: Sequence[bytes]
    places: LogPlaces
    notes: Sequence[str] = ()


@runtime_checkable
class SentInlet(Protocol):
    """Is sent requests."""

    def check(self, headers: Mapping[str, str], body: bytes, now_utc: int) -> SentRequest:
        """Return the request; `headers` by their names in small letters. Raises UnsignedError for somebody else's."""


@runtime_checkable
class FetchedInlet(Protocol):
    """Fetches events from a log. One thread calls it."""

    def fetch(self, known: LogPlaces | None) -> Fetched:
        """Return events after the places that are stored, None for a new inlet; waits a moment for the first one.

        Raises InletDownError.
        """

    def close(self) -> None:
        """Give up connections; the next fetch begins at the places that it is given."""
