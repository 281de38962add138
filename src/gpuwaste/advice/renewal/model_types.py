"""The types of what `gpuwaste model` prints: the bundles of a site, one of them in full, the champion's status."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from gpuwaste.advice.predict.drift import FeatureDrift
from gpuwaste.advice.predict.manifest import Manifest
from gpuwaste.core.bundle_registry import BundleStatus
from gpuwaste.core.fields import Document, MaybeRatio, Ratio, Utc


class ModelRow(BundleStatus, kw_only=True, frozen=True):
    """One bundle of the models' directory."""

    origin: str
    created_utc: Annotated[int | None, Meta(description="UTC seconds.")]
    rows: Annotated[int | None, Meta(description="Jobs in its training data.")]


class ModelsDocument(Document, kw_only=True, frozen=True):
    """What `gpuwaste model list` prints."""

    document: Literal["models"] = "models"
    models: list[ModelRow]


class ModelDocument(Document, kw_only=True, frozen=True):
    """What `gpuwaste model show` prints: a bundle's manifest, whose fields are the document's own in JSON."""

    document: Literal["model"] = "model"
    hash: str
    note: Annotated[str, Meta(description="How the model differs from the site's settings; empty: no difference.")]
    manifest: Manifest

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        manifest: dict[str, Any] = to_builtins(self.manifest)
        return {"document": self.document, "hash": self.hash, "note": self.note, **manifest}


class QuantileCoverage(Struct, kw_only=True, frozen=True):
    """The share of jobs below one quantile."""

    quantile: Ratio
    as_is: MaybeRatio
    rolled: Annotated[float | None, Meta(description="Under the rolling correction, 0 to 1.")]


class TargetStatus(Struct, kw_only=True, frozen=True):
    """How good the predictions of one target are: calibration error of a probability, coverage of quantiles."""

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
    """What `gpuwaste model status` prints: how good a bundle is on jobs submitted after its training."""

    document: Literal["model-status"] = "model-status"
    name: str
    hash: str
    origin: str
    jobs: int
    first_utc: Utc
    last_utc: Utc
    psi_some: Annotated[
        float, Meta(description="Population stability index (PSI) from which a feature counts as moved.")
    ]
    psi_much: Annotated[float, Meta(description="PSI from which a feature counts as another population.")]
    min_jobs: Annotated[int, Meta(description="Minimum number of jobs to judge drift.")]
    features: list[FeatureDrift]
    targets: list[TargetStatus]
    source: Annotated[str, Meta(description="Source of the jobs.")] = ""


class ModelChange(Document, kw_only=True, frozen=True):
    """What `gpuwaste model promote`, `rollback`, `add`, `challenge`, `withdraw` and `prune` print."""

    document: Literal["model-change"] = "model-change"
    added: str | UnsetType = UNSET
    removed: str | UnsetType = UNSET
    champion: str | UnsetType = UNSET
    challenger: str | UnsetType = UNSET
    withdrawn: str | UnsetType = UNSET
    hash: str | UnsetType = UNSET
