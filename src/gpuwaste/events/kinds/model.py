"""Family model: the models that predict."""

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from gpuwaste.core.codec import Number
from gpuwaste.events.event_kind import EventKind


@dataclass(frozen=True, slots=True)
class ModelInUse:
    """A bundle."""

    cluster: str
    name: str
    model_hash: str
    created_utc: Annotated[Number | None, Meta(description="When it was trained, UTC seconds.")]
    before: Annotated[str, Meta(description="The hash of the one before, empty for none.")] = ""


KINDS: Final = (EventKind("model.promoted", "The hub predicts with another bundle than before.", ModelInUse),)
