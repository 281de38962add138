"""Sources: what the hub checks once a minute and reports as events; each file has `make`, and all files are loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.typed import decode
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.ledger.now.now_document import Now
from gpuwaste.net.health_types import PredictionHealth
from gpuwaste.store.hub.hub_store import HubStore

_BACK_S = 7 * DAY_S
_MOST = 200_000


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """The input of sources: the instant (UTC s), the cluster, its state, and the predictor."""

    now: int
    cluster: str
    held: Now
    prediction: PredictionHealth
    idle_min_s: float  # a GPU idle for this long is reported


class EventSource(Protocol):
    """Call it from one thread; what it reported before a restart it finds in the stream."""

    def events(self, seen: SourceSnapshot) -> Sequence[StoredEvent]:
        """Return the new events. Raises StoreError."""

    def told(self) -> None:
        """Record that the last result of `events` is in the stream; what is not recorded is returned again."""


@dataclass(frozen=True, slots=True)
class SourceStores:
    """The stores that sources read: reported events, judged runs, and saved simulations."""

    store: HubStore
    events: EventStore
    simulations: Path | None = None


def sources(stores: SourceStores) -> list[EventSource]:
    """Return a source of each file, in the order of their names."""
    return [module.make(stores) for module in ModuleRegistry[Any](__name__, "make").values()]


class OpenSubjects:
    """Subjects that are open, each with a number that the source defines."""

    def __init__(self, events: EventStore, opens: str, closes: str, number: str = "heard_utc") -> None:
        """Take the kinds that open and close, and the field of the data that is kept."""
        self._events = events
        self._kinds = (opens, closes)
        self._number = number
        self._known: dict[str, int] | None = None

    def subjects(self, now: int) -> Mapping[str, int]:
        """Return the open subjects. Raises StoreError."""
        if self._known is None:
            closes = self._kinds[1]
            found: dict[str, int] = {}
            for row in self._events.told_since(self._kinds, now - _BACK_S, _MOST):
                if row["kind"] == closes:
                    found.pop(row["subject"], None)
                else:
                    data: dict[str, Any] = decode(row["data"])
                    found[row["subject"]] = int(data[self._number])
            self._known = found
        return self._known

    def replace(self, subjects: Mapping[str, int]) -> None:
        """Set the open subjects."""
        self._known = dict(subjects)
