"""The state of prediction in a hub: which model is in use, and what is wrong with it."""

from typing import Annotated, Literal

from msgspec import Meta

from gpuwaste.documents.fields import Document


class PredictionHealth(Document, frozen=True):
    """How prediction stands."""

    state: Literal["starting", "ready", "not installed"]
    model: Annotated[str, Meta(description="The name of the bundle in use; empty: none.")]
    model_hash: str
    created: Annotated[int | None, Meta(description="When the bundle was made, UTC seconds.")]
    event: Annotated[int | None, Meta(description="The last event of the history that is known.")]
    note: Annotated[str, Meta(description="How the bundle differs from the site's settings; empty: nothing.")]
    error: Annotated[
        str, Meta(description="Why the champion, or what is new in the history, is not in use; empty: nothing.")
    ]
