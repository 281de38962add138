"""A prediction as every place prints it: probabilities, quantiles, reasons in the user's numbers, what to change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

Source = Literal["site model", "baseline", "history", "own runs", "white box"]


@dataclass(slots=True)
class Reason:
    """One feature's part in a probability, in the user's own words and numbers."""

    feature: str
    value: Annotated[float | None, Meta(description="In the feature's own unit; null: not known.")]
    usual: Annotated[float | None, Meta(description="The feature's usual value at the site.")]
    effect: Annotated[float, Meta(description="The probability with the value, minus the one with the usual value.")]
    text: Annotated[str, Meta(description='As in "6 of your last 8 jobs named train failed".')]


@dataclass(slots=True)
class TargetForecast:
    """What is expected of one target by a model or by history."""

    target: str
    source: Source
    basis: Annotated[
        int,
        Meta(
            description="Number of past jobs for a prediction from job history, otherwise rows in the model's training."
        ),
    ]
    p: Annotated[float | None, Meta(description="The probability, 0 to 1.")] = None
    level: Annotated[str, Meta(description="The highest operating point that p reaches: warn, reject, or none.")] = ""
    quantiles: Annotated[Mapping[str, float], Meta(description='By level, such as "0.5", in the target\'s unit.')] = (
        field(default_factory=dict)
    )


@dataclass(slots=True)
class TargetPrediction(TargetForecast):
    """What is said of one target: a probability, or quantiles in the target's unit; the other one is empty."""

    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """What is said of a request without reasons, and whether the user's jobs like it all reach their time limit."""

    targets: tuple[TargetPrediction, ...]
    usually_late: bool


@dataclass(frozen=True, slots=True)
class RequestChange:
    """Another request, and what it would change."""

    option: Annotated[str, Meta(description="The exact option.")]
    text: str
    before: Annotated[Mapping[str, float], Meta(description="The prediction by target.")]
    after: Mapping[str, float]
