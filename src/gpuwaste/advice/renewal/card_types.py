"""The types of a bundle's card (card.json), which `gpuwaste model train --json` prints too."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from gpuwaste.advice.predict.manifest import PlattScaling
from gpuwaste.core.fields import Document, Ratio, Utc

SCHEMA: Final = 1
_MaybeNumber = Annotated[float | None, Meta(description="A number without a unit; null: not known.")]
_Score = Annotated[float | UnsetType, Meta(description="Mean over the folds; higher is better.")]


class CardInterval(Struct, frozen=True):
    """A figure with its interval of 95 %, by bootstrap over users."""

    value: _MaybeNumber
    low: _MaybeNumber
    high: _MaybeNumber


class CardByUser(Struct, frozen=True):
    """A figure per user: the mean over users, and that of the worst tenth of them."""

    mean: _MaybeNumber
    worst_decile: _MaybeNumber


class CardPoint(Struct, kw_only=True, frozen=True):
    """One operating point on the test part."""

    threshold: Annotated[float, Meta(description="Jobs with this probability or more are flagged.")]
    jobs: Annotated[int, Meta(description="Flagged jobs.")]
    share: Annotated[float, Meta(description="Flagged jobs as a share of the test part, 0 to 1.")]
    precision: CardInterval
    recall: CardInterval


class CardLevel(Struct, kw_only=True, frozen=True):
    """One quantile on the test part."""

    under_rate: Annotated[CardInterval, Meta(description="Share of the jobs that used more, 0 to 1.")]
    reserved_over_used: Annotated[CardInterval, Meta(description="Reserved amount divided by used amount.")]
    reserved_over_used_unweighted: Annotated[float | None, Meta(description="The same ratio; each job counts once.")]


class CardRequest(Struct, kw_only=True, frozen=True):
    """What the jobs themselves requested."""

    jobs: Annotated[int, Meta(description="Jobs of the test part whose request is known.")]
    reserved_over_used: _MaybeNumber


class CardFigures(Struct, kw_only=True, frozen=True):
    """How good a target was on the test part; probabilities and quantiles have different figures."""

    jobs: int
    users: int
    base_rate: Annotated[Ratio | UnsetType, Meta(description="Share of positive jobs, 0 to 1.")] = UNSET
    note: Annotated[str | UnsetType, Meta(description="Why figures are missing.")] = UNSET
    average_precision: CardInterval | UnsetType = UNSET
    recall_at_precision: CardInterval | UnsetType = field(default=UNSET, name="recall_at_precision_0.95")
    f1: CardInterval | UnsetType = UNSET
    ece: Annotated[CardInterval | UnsetType, Meta(description="Calibration error, 0 to 1.")] = UNSET
    ece_uncorrected: Annotated[
        float | UnsetType | None, Meta(description="The same without the rolling correction.")
    ] = UNSET
    operating_points: Mapping[str, CardPoint] | UnsetType = UNSET
    brier_by_user: CardByUser | UnsetType = UNSET
    quantiles: Mapping[str, CardLevel] | UnsetType = UNSET
    request: CardRequest | UnsetType = UNSET
    under_rate_by_user: CardByUser | UnsetType = field(default=UNSET, name="under_rate_0.95_by_user")


class CardFeature(Struct, kw_only=True, frozen=True):
    """A feature that a target uses."""

    feature: str
    text: Annotated[str, Meta(description="In words.")]
    share_of_gain: Annotated[float, Meta(description="Share of the gain in the trees, 0 to 1.")]


class CardSearch(Struct, kw_only=True, frozen=True):
    """The search for parameters; without a trial only its note."""

    trials: int
    note: Annotated[str | UnsetType, Meta(description="Why there was none.")] = UNSET
    folds: int | UnsetType = UNSET
    score_of_defaults: _Score = UNSET
    best_score: _Score = UNSET
    changed: Annotated[bool | UnsetType, Meta(description="Whether a trial beat the defaults.")] = UNSET
    params: Annotated[Mapping[str, int | float] | UnsetType, Meta(description="Parameters of XGBoost.")] = UNSET


class CardTarget(Struct, kw_only=True, frozen=True):
    """One target: the figures are of the model of the first part, everything else is of the shipped one."""

    text: str
    unit: str
    kind: Literal["probability", "quantiles"]
    jobs_learnt_from: int
    jobs_learnt_from_for_the_figures: int
    base_rate: Annotated[float | None, Meta(description="Share of positive jobs in training, 0 to 1.")]
    test: CardFigures
    calibration: PlattScaling
    shifts: Annotated[tuple[float, ...], Meta(description="Added to the logarithm of each quantile.")]
    importance: Annotated[list[CardFeature], Meta(description="The largest share first.")]
    search: CardSearch
    thresholds: Annotated[Mapping[str, float], Meta(description="Probabilities by operating point.")] = {}


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The options of a training run.

    Equal data, `trials`, `seed` and `threads` give equal ONNX files, if no budget cut a search short.
    """

    trials: Annotated[int, Meta(description="Trials of the search for each target.")] = 5
    seed: int = 1
    time_budget_s: Annotated[float | None, Meta(description="For the searches together, seconds.")] = None
    targets: Annotated[tuple[str, ...], Meta(description="Empty: all.")] = ()
    since: Annotated[int | None, Meta(description="Only submissions since then, UTC seconds; null: all.")] = None
    threads: int = 2


class CardSplit(Struct, kw_only=True, frozen=True):
    """Shares of the jobs, 0 to 1, in the order of submission."""

    train: Ratio
    validation: Ratio
    test: Ratio
    last_calibration: Annotated[
        float, Meta(description="Share of the last jobs, which calibrate the final model, 0 to 1.")
    ]


@dataclass(frozen=True, slots=True)
class Parity:
    """The difference of XGBoost and ONNX Runtime that an export's check measured."""

    rows: Annotated[int, Meta(description="Rows compared.")]
    real: int
    edges: Annotated[int, Meta(description="Rows on a threshold of a tree, or next to it.")]
    max_difference: Annotated[float, Meta(description="The largest one, as a probability or a logarithm.")]
    flips: Annotated[int, Meta(description="Rows on different sides of a threshold.")]


class ModelCard(Document, kw_only=True, frozen=True):
    """What a bundle learnt from, how good it was on unseen jobs, and its limits; no names of users."""

    schema: int = SCHEMA
    name: str
    cluster: str
    created_utc: Utc
    source: str
    jobs: int
    users: int
    window_utc: Annotated[tuple[int, int], Meta(description="The first and the last submission, UTC seconds.")]
    left: Annotated[Mapping[str, int], Meta(description="Rows left out of the training, by reason.")]
    end_rule: str
    label_rule: str
    feature_version: int
    features: int
    settings: TrainingSettings
    split: CardSplit
    warnings: list[str]
    targets: Mapping[str, CardTarget]
    left_out: Annotated[Mapping[str, str], Meta(description="Why there is no model of a target.")]
    parity: Annotated[Mapping[str, Parity], Meta(description="By target.")]
    not_for: list[str]
