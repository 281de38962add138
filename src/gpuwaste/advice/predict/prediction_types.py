"""The types of predictions: probabilities, quantiles, reasons, changes, and the documents that hold them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from gpuwaste.core.fields import Document, Recorded, Table
from gpuwaste.jobs.job_event import ScriptSays
from gpuwaste.jobs.program_estimate import ProgramEstimate
from gpuwaste.jobs.verdict import Action
from gpuwaste.slurm.submit.job_request import JobRequest

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
    """The prediction of one target: a probability, or quantiles in the target's unit; the other one is empty."""

    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Scored:
    """The prediction of a request without reasons, and whether the user's similar jobs all reach their time limit."""

    targets: tuple[TargetPrediction, ...]
    usually_late: bool


@dataclass(frozen=True, slots=True)
class RequestChange:
    """Another request, and what it would change."""

    option: Annotated[str, Meta(description="The exact option.")]
    text: str
    before: Annotated[Mapping[str, float], Meta(description="The prediction by target.")]
    after: Mapping[str, float]


class PredictPolicy(Struct, kw_only=True, frozen=True):
    """What the site's policies would do at sbatch; except for operators, only what would be printed."""

    policy: Annotated[str, Meta(description="The policy that applies; empty: not visible to the caller.")]
    mode: Literal["", "off", "shadow", "annotate", "warn", "reject"]
    action: Action
    would_be: Annotated[
        Action, Meta(description="For operators: the action without the policy's mode. For others: same as action.")
    ]
    held: Annotated[str, Meta(description="For operators: why it is held back: shadow, override, budget ...")] = ""
    lines: Annotated[
        list[str],
        Meta(description="What sbatch would print, 3 lines at most; for operators also held-back advice."),
    ]


class PredictFacts(Struct, kw_only=True, frozen=True):
    """What policies judge besides the prediction."""

    own: Annotated[
        Mapping[str, list[str]],
        Meta(description="Sentences with exact numbers from the user's own last runs, by target."),
    ] = {}
    script: Annotated[
        ScriptSays,
        Meta(description="Whether jobs of this user and name failed with this script."),
    ] = "unknown"
    whole_node: Annotated[bool, Meta(description="Whether the partition allocates entire nodes.")] = False
    last_job: Annotated[int | None, Meta(description="The user's last ended job of this name; null: none.")] = None


class PredictDocument(Document, kw_only=True, frozen=True):
    """The prediction of one request; what a model on the caller's host predicts has neither facts nor policy."""

    request: Annotated[JobRequest, Meta(description="The request, without its script.")]
    model: Annotated[str, Meta(description="Name of the bundle; empty if only job history is used.")]
    model_hash: str
    targets: list[TargetPrediction]
    changes: Annotated[list[RequestChange], Meta(description="Smaller requests, and what they would change.")]
    notes: list[str]
    own_history: Annotated[
        bool,
        Meta(description="Whether any job of the user has ended; if not, a model predicts from the site's jobs."),
    ] = True
    facts: PredictFacts | UnsetType = UNSET
    policy: PredictPolicy | UnsetType = UNSET
    program: Annotated[ProgramEstimate | UnsetType, Meta(description="Estimate for the job's program.")] = UNSET


class PredictAnswer(Document, kw_only=True, frozen=True):
    """One prediction for each request, or for each component of the requested job."""

    predictions: list[PredictDocument]


_COLUMNS: Final = (
    *("request", "name", "user", "target", "source", "basis", "p", "level", "quantile", "value", "model", "model_hash"),
)


class PredictionsDocument(Document, kw_only=True, frozen=True):
    """What `gpuwaste predict` prints."""

    document: Literal["predict"] = "predict"
    recorded: Recorded = False
    predictions: list[PredictDocument]
    notes: list[str]

    def table(self, _: str = "") -> Table:
        """Return a row for each probability and for each quantile."""
        return _COLUMNS, (row for place, one in enumerate(self.predictions, 1) for row in _numbers(place, one))


def _numbers(place: int, prediction: PredictDocument) -> Iterator[Mapping[str, Any]]:
    of_request = {"request": place, "name": prediction.request.name, "user": prediction.request.user}
    of_request |= {"model": prediction.model, "model_hash": prediction.model_hash}
    for target in map(to_builtins, prediction.targets):
        quantiles = target["quantiles"] or {"": None}
        yield from ({**target, **of_request, "quantile": q, "value": v} for q, v in quantiles.items())
