"""Source of model.promoted: the bundle that the hub predicts with, if no rule has reported the change."""

from collections.abc import Sequence

from gpuwaste.act.events.sources import SourceSnapshot, SourceStores
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.kinds.model import ModelInUse

_PROMOTED = "model.promoted"
_IN_USE = (_PROMOTED, "model.rolled_back")


class ModelChanges:
    """Compares the bundle with the one that was reported last, by any source."""

    def __init__(self, stores: SourceStores) -> None:
        self._events = stores.events

    def events(self, seen: SourceSnapshot) -> Sequence[StoredEvent]:
        """Return the event of the bundle if it has changed."""
        found = seen.prediction
        before = self._events.last_told(_IN_USE, "model_hash")
        if not found.model_hash or found.model_hash == before:
            return []
        data = ModelInUse(seen.cluster, found.model, found.model_hash, found.created, before)
        unique = f"{found.model_hash} {seen.now}"
        return [tell(_PROMOTED, data, seen.now, subject=f"model/{found.model}", unique=unique)]

    def told(self) -> None:
        """Do nothing: the stream has the events."""


def make(stores: SourceStores) -> ModelChanges:
    """Return the source."""
    return ModelChanges(stores)
