"""Family model: the models that predict, their quality, and how one replaces another."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from gpuwaste.core.codec import Number, Whole
from gpuwaste.jobs.events.event_kind import EventKind

_Maybe = Annotated[Number | None, Meta(description="null: the jobs do not allow it.")]
_Card = Annotated[dict[str, Any], Meta(description="The main figures of the bundle's card; empty: it has none.")]


@dataclass(frozen=True, slots=True)
class TargetEvidence:
    """One target: the model in use and another one on the same jobs, by a paired bootstrap over users."""

    target: str
    jobs: Annotated[Whole, Meta(description="Submissions that both have scored and that have an outcome.")]
    users: Whole
    positives: Annotated[Whole, Meta(description="Those of them for which the target came true.")]
    model_ap: Annotated[_Maybe, Meta(description="Average precision of the model in use, 0 to 1.")]
    other_ap: Annotated[_Maybe, Meta(description="Average precision of the other model, 0 to 1.")]
    gain: Annotated[_Maybe, Meta(description="The second minus the first.")]
    low: Annotated[_Maybe, Meta(description="Lower end of the gain's interval of 95 %.")]
    high: Annotated[_Maybe, Meta(description="Upper end of the gain's interval of 95 %.")]
    better: Annotated[Number, Meta(description="Share of the draws in which the gain exceeds the margin, 0 to 1.")]
    model_brier: Annotated[_Maybe, Meta(description="Mean squared error of the model in use; lower is better.")]
    other_brier: Annotated[_Maybe, Meta(description="Mean squared error of the other model.")]


@dataclass(frozen=True, slots=True)
class ModelInUse:
    """A bundle that predicts from now on."""

    cluster: str
    name: str
    model_hash: str
    created_utc: Annotated[Number | None, Meta(description="When it was trained, UTC seconds.")]
    before: Annotated[str, Meta(description="Hash of the previous model; empty: none.")] = ""
    by: Annotated[Literal["person", "rule"], Meta(description="rule: by [models], from the evidence.")] = "person"
    reason: Annotated[str, Meta(description="Reason in words; empty: done by a person.")] = ""
    evidence: Annotated[
        tuple[TargetEvidence, ...],
        Meta(description="Before the change: the model that was in use, compared with the challenger or the baseline."),
    ] = ()
    card: _Card = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelTrained:
    """A bundle that was added to the registry."""

    cluster: str
    name: str
    model_hash: str
    created_utc: Annotated[Number, Meta(description="When it was trained, UTC seconds.")]
    rows: Annotated[Whole, Meta(description="Jobs in its training data.")]
    role: Annotated[
        Literal["champion", "challenger", "none"], Meta(description="Role of the model at the time of the event.")
    ]
    card: _Card = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelDrift:
    """A target of the model in use whose calibration is off, sent once for each model and target."""

    cluster: str
    name: str
    model_hash: str
    target: str
    jobs: Annotated[Whole, Meta(description="The newest submissions with an outcome.")]
    ece: Annotated[Number, Meta(description="Calibration error under the rolling correction, 0 to 1.")]
    limit: Annotated[Number, Meta(description="The error above which it is drift.")]


KINDS: Final = (
    EventKind("model.trained", "A new bundle is in the registry.", ModelTrained),
    EventKind("model.promoted", "The hub predicts with another bundle than before.", ModelInUse),
    EventKind("model.rolled_back", "The model in use was worse than the baseline: the one before is back.", ModelInUse),
    EventKind("model.drift", "The probabilities of the model in use are off.", ModelDrift),
)
