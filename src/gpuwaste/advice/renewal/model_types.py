"""The types of what `gpuwaste model` prints: the bundles of a site, one of them in full, how the champion fares."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gpuwaste.advice.predict.drift import FeatureDrift
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.core.fields import Document, MaybeRatio, Ratio, Utc
from gpuwaste.core.underuse import UnderUse


class ModelRow(Struct, kw_only=True, frozen=True):
    """One bundle of the models' directory."""

    name: str
    champion: Annotated[bool, Meta(description="Whether it is in use.")]
    challenger: Annotated[bool, Meta(description="Whether it is on trial.")] = False
    hash: Annotated[str, Meta(description="sha256 of the manifest, hex; empty: not readable.")]
    problem: Annotated[str, Meta(description="Why it cannot be used; empty: nothing.")]
    origin: str
    created_utc: Annotated[int | None, Meta(description="UTC seconds.")]
    rows: Annotated[int | None, Meta(description="Jobs that it learnt from.")]


class ModelsDocument(Document, kw_only=True, frozen=True):
    """What `gpuwaste model list` prints."""

    document: Literal["models"] = "models"
    models: list[ModelRow]


class ModelDocument(Document, kw_only=True, frozen=True):
    """What `gpuwaste model show` prints: a bundle's manifest."""

    document: Literal["model"] = "model"
    hash: str
    note: Annotated[str, Meta(description="How the bundle differs from the site's settings; empty: nothing.")]
    name: str
    origin: str
    cluster: str
    created_utc: Utc
    feature_version: int
    feature_hash: str
    features: tuple[str, ...]
    label_rule: str
    under_use: UnderUse
    end_rule: str
    window: Annotated[tuple[int, int], Meta(description="The first and the last submission learnt from, UTC seconds.")]
    rows: int
    targets: tuple[TargetModel, ...]
    left_out: Annotated[Mapping[str, str], Meta(description="Why there is no model of a target.")]
    references: Annotated[tuple[float | None, ...], Meta(description="The features' medians in training.")]
    files: Annotated[Mapping[str, str], Meta(description="sha256 of each file, hex.")]
    drift_bins: tuple[tuple[float, ...], ...]
    drift_shares: tuple[tuple[float, ...], ...]
    schema: int


class QuantileCoverage(Struct, kw_only=True, frozen=True):
    """The share of jobs below one quantile."""

    quantile: Ratio
    as_is: MaybeRatio
    rolled: Annotated[float | None, Meta(description="Under the rolling correction, 0 to 1.")]


class TargetStatus(Struct, kw_only=True, frozen=True):
    """How one target fares: a probability by its calibration error, quantiles by their coverage."""

    target: str
    jobs: int
    bad: Annotated[bool, Meta(description="Whether the model should be trained again.")]
    kind: Literal["probability", "quantiles"]
    rate: MaybeRatio | UnsetType = UNSET
    learnt_rate: MaybeRatio | UnsetType = UNSET
    coverage: list[QuantileCoverage] | UnsetType = UNSET
    limit: Ratio
    ece_as_is: MaybeRatio | UnsetType = UNSET
    ece_rolled: MaybeRatio | UnsetType = UNSET


class ModelStatus(Document, kw_only=True, frozen=True):
    """What `gpuwaste model status` prints: how a bundle fares on the jobs after those it learnt from."""

    document: Literal["model-status"] = "model-status"
    name: str
    hash: str
    origin: str
    jobs: int
    first_utc: Utc
    last_utc: Utc
    psi_some: Annotated[float, Meta(description="The population stability index from which a feature has moved.")]
    psi_much: Annotated[float, Meta(description="The index from which it is another population.")]
    min_jobs: Annotated[int, Meta(description="With fewer jobs nothing is called drift.")]
    features: list[FeatureDrift]
    targets: list[TargetStatus]
    source: Annotated[str, Meta(description="Where the jobs are from.")] = ""


class ModelChange(Document, kw_only=True, frozen=True):
    """What `gpuwaste model promote`, `rollback`, `add`, `challenge`, `withdraw` and `prune` print."""

    document: Literal["model-change"] = "model-change"
    added: str | UnsetType = UNSET
    removed: str | UnsetType = UNSET
    champion: str | UnsetType = UNSET
    challenger: str | UnsetType = UNSET
    withdrawn: str | UnsetType = UNSET
    hash: str | UnsetType = UNSET


def model_document(manifest: Manifest, digest: str, note: str) -> ModelDocument:
    """Return a bundle's manifest as a document."""
    return ModelDocument(
        hash=digest, note=note, **{part.name: getattr(manifest, part.name) for part in fields(Manifest)}
    )
