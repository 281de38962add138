"""What the hub sees now and then and tells as events: each file is one source with `make`, found by being here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.events.stored_event import StoredEvent
from gpuwaste.ledger.now.now import Now
from gpuwaste.net.health import PredictionHealth
from gpuwaste.store.hub.hub_store import HubStore


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """What sources look at: the instant (UTC s), the cluster, what it does, what predicts; and the store."""

    now: int
    cluster: str
    held: Now
    prediction: PredictionHealth
    idle_min_s: float  # so long a GPU is idle before it is told


class EventSource(Protocol):
    """One thread calls it; what it told before a restart it finds in the stream."""

    def events(self, seen: SourceSnapshot) -> Sequence[StoredEvent]:
        """Return what is news. Raises StoreError."""

    def told(self) -> None:
        """Note that what `events` returned last is in the stream; what is not noted is returned again."""


@dataclass(frozen=True, slots=True)
class SourceStores:
    """Where sources find what was told, what was judged, and simulations that were saved."""

    store: HubStore
    events: EventStore
    simulations: Path | None = None


def sources(stores: SourceStores) -> list[EventSource]:
    """Return a source of each file, in the order of their names."""
    return [module.make(stores) for module in ModuleRegistry[Any](__name__, "make").values()]
