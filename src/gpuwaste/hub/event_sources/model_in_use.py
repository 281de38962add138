"""Source of model.promoted: the bundle that the hub predicts with."""

from collections.abc import Sequence

from gpuwaste.core.told_event import ToldEvent
from gpuwaste.events.envelope import tell
from gpuwaste.events.kinds.model import ModelInUse
from gpuwaste.hub.event_sources import Seen, SourceStores

_PROMOTED = "model.promoted"


class ModelChanges:
    """Compares the bundle with the one that was told last."""

    def __init__(self, stores: SourceStores) -> None:
        self._events = stores.events
        self._last: str | None = None
        self._now = ""

    def events(self, seen: Seen) -> Sequence[ToldEvent]:
        """Return the bundle where it is another than before."""
        found = seen.prediction
        self._now = found.model_hash or self._before()
        if not found.model_hash or found.model_hash == self._before():
            return []
        data = ModelInUse(seen.cluster, found.model, found.model_hash, found.created, self._before())
        unique = f"{found.model_hash} {seen.now}"
        return [tell(_PROMOTED, data, seen.now, subject=f"model/{found.model}", unique=unique)]

    def told(self) -> None:
        """Note it."""
        self._last = self._now

    def _before(self) -> str:
        if self._last is None:
            self._last = self._events.last_told(_PROMOTED, "model_hash")
        return self._last


def make(stores: SourceStores) -> ModelChanges:
    """Return the source."""
    return ModelChanges(stores)
