"""manifest.json of a model bundle: its content, the features it is for, its training data, and its files' sha256."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from msgspec import Meta

from gpuwaste.core.bundle_files import BundleManifest, read_files, unknown_key
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ParseError
from gpuwaste.core.underuse import UNDER_USE, UnderUse

SCHEMA: Final = 1
Origin = Literal["site", "baseline"]


@dataclass(frozen=True, slots=True)
class PlattScaling:
    """p = 1 / (1 + exp(-(slope * logit(raw) + offset))): Platt's scaling of a raw probability."""

    slope: Annotated[float, Meta(description="Per unit of the logit.")] = 1.0
    offset: Annotated[float, Meta(description="Added to the logit.")] = 0.0


@dataclass(frozen=True, slots=True)
class TargetModel:
    """One target's ONNX file: input "features" float32 [n, F], output "raw" float32 [n, 1] or [n, quantiles].

    A probability's raw output is a probability before calibration. A quantile's is the natural logarithm of the
    quantile in the target's unit. `thresholds` are calibrated probabilities by operating point (warn, reject), absent
    where validation gave none. `shifts` are the additive corrections of each log quantile that validation gave, with
    which a rolling correction starts.
    """

    target: str
    file: str
    quantiles: tuple[float, ...] = ()
    calibration: PlattScaling = PlattScaling()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    shifts: tuple[float, ...] = ()
    rows: int = 0
    base_rate: Annotated[float | None, Meta(description="The share of 1 in training, 0 to 1.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(BundleManifest):
    """The manifest of a bundle.

    `references` are what an explanation compares with (None where a feature was never known). `drift_bins` has the
    inner edges of each feature's bins in training, and `drift_shares` the share of each bin with the share of unknown
    values last: what the population stability index compares with. `under_use` is the rule of the labels.
    """

    origin: Origin
    cluster: str
    feature_version: int
    feature_hash: str
    features: tuple[str, ...]
    label_rule: str
    under_use: UnderUse = UNDER_USE
    end_rule: str
    window: Annotated[tuple[int, int], Meta(description="First and last submission in the training data, UTC seconds.")]
    rows: int
    targets: tuple[TargetModel, ...]
    left_out: Annotated[Mapping[str, str], Meta(description="Why there is no model of a target.")]
    references: Annotated[tuple[float | None, ...], Meta(description="The features' medians in training.")]
    drift_bins: tuple[tuple[float, ...], ...] = ()
    drift_shares: tuple[tuple[float, ...], ...] = ()
    schema: int = SCHEMA

    def to_json(self) -> str:
        """Return the file's text: keys sorted, so that equal bundles have equal manifests."""
        return json.dumps(asdict(self), indent=1, sort_keys=True, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> Self:
        """Read a manifest; `where` names it in errors. Raises ParseError."""
        try:
            data = json.loads(text)
            if not isinstance(data, dict) or data.get("schema") != SCHEMA:
                raise ParseError(
                    f"{where}: not a manifest of schema {SCHEMA}: train or install a bundle of this version"
                )
            if unknown := unknown_key(data, cls):
                raise ParseError(f"{where}: not a model bundle's manifest: {unknown!r} is not a key of it")
            return convert(data, cls, f"{where}: not a model bundle's manifest")
        except (ValueError, RecursionError) as error:
            raise ParseError(f"{where}: not a model bundle's manifest: {error}") from error


BundleFiles = tuple[Manifest, dict[str, bytes], str]


def read_bundle(directory: Path) -> BundleFiles:
    """Return manifest, the content of each file, its own included, and its sha256, which identifies the bundle.

    Raises ModelError (gpuwaste.core.bundle_files).
    """
    return read_files(directory, Manifest.from_json)
