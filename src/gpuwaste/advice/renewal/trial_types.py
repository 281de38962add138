"""The type of GET /v1/models/trial: the model on trial compared with the one in use, and the decision."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, Utc
from gpuwaste.jobs.events.kinds.model import TargetEvidence


class TrialModel(Struct, kw_only=True, frozen=True):
    """A bundle."""

    name: str
    hash: Annotated[str, Meta(description="sha256 of the manifest, hex.")]
    created_utc: Annotated[int, Meta(description="When it was trained, UTC seconds.")]
    rows: Annotated[int, Meta(description="Jobs that it learnt from.")]


class TrialDocument(Document, kw_only=True, frozen=True):
    """What `gpuwaste model trial` prints."""

    document: Literal["model-trial"] = "model-trial"
    generated: Utc
    cluster: str = ""
    renew: Annotated[bool, Meta(description="Whether the rule may change the model in use: [models] renew.")] = False
    champion: Annotated[TrialModel | None, Meta(description="The model in use; null: none.")] = None
    challenger: Annotated[TrialModel | None, Meta(description="The model on trial; null: none.")] = None
    since: Annotated[float | None, Meta(description="When the trial began, UTC seconds; null: no trial.")] = None
    comparison: Annotated[
        list[TargetEvidence], Meta(description="The model in use compared with the one on trial.")
    ] = []  # noqa: RUF012 copied
    decision: Annotated[str, Meta(description="Whether the rule promotes, and why or why not.")] = "no model on trial"
    against_baseline: Annotated[
        list[TargetEvidence], Meta(description="The model in use compared with the baseline.")
    ] = []  # noqa: RUF012 copied
    rollback: Annotated[str, Meta(description="Whether the rule rolls back, and why or why not.")] = ""
    changed: Annotated[Literal["", "promoted", "rolled back"], Meta(description="What this comparison changed.")] = ""
    error: Annotated[str, Meta(description="Why there is no newer comparison; empty: nothing.")] = ""
