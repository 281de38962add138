"""Outlet: where events go. Each file in outlets/ has SETTINGS, the type of its table, and `make(settings, where)`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.jobs.events.stored_event import StoredEvent


class OutletDownError(GpuwasteError):
    """Nothing, or not all, was handed over now; the same events come again later."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """Events that the other side will never take, each with its reason; all the others were handed over."""

    dead: Sequence[tuple[StoredEvent, str]] = ()


class Outlet(Protocol):
    """Hands events over, in their order. One thread calls it."""

    def deliver(self, events: Sequence[StoredEvent], cluster: str) -> DeliveryResult:
        """Return once the other side has acknowledged all that it takes. Raises OutletDownError."""

    def close(self) -> None:
        """Give up connections."""
