"""A model bundle in memory: every file is checked before ONNX Runtime reads it, every graph is tried once; registry.

The registry of a site's bundles is gpuwaste.core.bundle_registry in models_dir.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.manifest import BundleFiles, Manifest, TargetModel, read_bundle
from gpuwaste.advice.predict.onnx_session import Session, Vectors
from gpuwaste.advice.predict.targets import OF_THE_LEDGER, TARGETS, Kind
from gpuwaste.core.bundle_files import AGAIN, NAME
from gpuwaste.core.bundle_registry import BundleRegistry
from gpuwaste.core.errors import ModelError
from gpuwaste.core.text import words_of
from gpuwaste.core.underuse import UnderUse

BASELINE: Final = Path(__file__).with_name("baseline")  # the bundle before any training: heuristics, not learned
TARGET_KEY: Final = "gpuwaste.target"  # properties that an export writes into each graph
HASH_KEY: Final = "gpuwaste.feature_hash"
RETRAIN: Final = "train again with this version of gpuwaste"
_KINDS: Final[Mapping[str, Kind]] = {target.name: target.kind for target in TARGETS}


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """The features that a program computes, and the targets made of them; a bundle with others is rejected."""

    version: int
    hash: str
    names: tuple[str, ...]
    targets: Mapping[str, Kind] = field(default_factory=lambda: _KINDS)


def our_features() -> FeatureSet:
    """Return the features of this version of gpuwaste."""
    from gpuwaste.advice.predict.features import FEATURE_VERSION, FEATURES, feature_hash  # noqa: PLC0415 the groups are many

    return FeatureSet(FEATURE_VERSION, feature_hash(), tuple(feature.name for feature in FEATURES))


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle; `hash` is the sha256 of its manifest, which holds that of every file. Safe across threads."""

    directory: Path
    manifest: Manifest
    hash: str
    sessions: Mapping[str, Session]

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets for which there is a model."""
        return tuple(model.target for model in self.manifest.targets)

    def model(self, target: str) -> TargetModel:
        """Return the manifest's entry for a target. Raises ModelError where there is no model of it."""
        for model in self.manifest.targets:
            if model.target == target:
                return model
        why = self.manifest.left_out.get(target, "not learnt")
        raise ModelError(f"{self.directory}: no model of {target} ({why}): choose one of {', '.join(self.targets)}")

    def rule_note(self, site: UnderUse) -> str:
        """Return a sentence if the GPU models were trained with another under-use rule than the site's."""
        own, learnt = self.manifest.under_use, OF_THE_LEDGER.intersection(self.targets)
        if own == site or not learnt:
            return ""
        return (
            f"{', '.join(sorted(learnt))} of model {self.manifest.name} were trained with the rule {own.text}; "
            f"the site's rule is {site.text}"
        )

    def raw(self, target: str, vectors: Vectors) -> NDArray[np.float32]:
        """Return float32 [n, 1] probabilities before calibration, or [n, q] log quantiles before their shifts.

        `vectors` is float32 [n, F], NaN for unknown. Raises ModelError for a missing target or a wrong shape.
        """
        session = self.sessions.get(target)
        if session is None:
            self.model(target)
            raise ModelError(f"{self.directory}: {target} was not loaded: {AGAIN}")
        return session.run(vectors)


def load_bundle(directory: Path, expected: FeatureSet | None = None, files: BundleFiles | None = None) -> Bundle:
    """Read, check and try a bundle, or `files` that were read before; `expected` is for tests.

    Raises ModelError: one line, the file, what to do.
    """
    wanted = expected or our_features()
    manifest, contents, digest = files or read_bundle(directory)
    where = directory / NAME
    _check_features(manifest, wanted, where)
    _check_targets(manifest, contents, where, wanted)
    sessions = {model.target: _session(model, manifest, contents, directory) for model in manifest.targets}
    return Bundle(directory, manifest, digest, sessions)


def _check_features(manifest: Manifest, wanted: FeatureSet, where: Path) -> None:
    if manifest.feature_version != wanted.version:
        raise ModelError(
            f"{where}: made for feature version {manifest.feature_version}, this gpuwaste computes version "
            f"{wanted.version}: {RETRAIN}"
        )
    if manifest.feature_hash != wanted.hash or manifest.features != wanted.names:
        raise ModelError(f"{where}: made for other features of the same version {wanted.version}: {RETRAIN}")
    width = len(wanted.names)
    per_feature = {"references": manifest.references, "drift_bins": manifest.drift_bins}
    per_feature["drift_shares"] = manifest.drift_shares
    for name, values in per_feature.items():
        if len(values) != width and not (len(values) == 0 and name != "references"):
            raise ModelError(f"{where}: {name} has {len(values)} entries for {width} features: {AGAIN}")
    medians = tuple(value for value in manifest.references if value is not None)
    pairs = zip(manifest.drift_bins, manifest.drift_shares, strict=False)
    fit = all(len(shares) == len(edges) + 2 for edges, shares in pairs)  # one bin more than edges, and the unknown
    if len(manifest.drift_bins) != len(manifest.drift_shares) or not fit:
        raise ModelError(f"{where}: drift_bins and drift_shares do not fit together: {AGAIN}")
    if not all(map(_finite, (medians, *manifest.drift_bins, *manifest.drift_shares, astuple(manifest.under_use)))):
        raise ModelError(
            f"{where}: references, drift_bins, drift_shares or under_use contain values that are not numbers: {AGAIN}"
        )


def _check_targets(manifest: Manifest, contents: Mapping[str, bytes], where: Path, wanted: FeatureSet) -> None:
    """Reject a manifest whose entries for its targets contradict each other."""
    if not manifest.targets:
        raise ModelError(f"{where}: has no target: train again")
    seen: set[str] = set()
    for model in manifest.targets:
        kind = wanted.targets.get(model.target)
        if kind is None or model.target in seen:
            raise ModelError(f"{where}: target {model.target!r} is unknown here, or there twice: {RETRAIN}")
        seen.add(model.target)
        if model.file not in contents or model.file == NAME:
            raise ModelError(f"{where}: {model.target} is in {model.file!r}, which the list of files lacks: {AGAIN}")
        if bool(model.quantiles) != (kind == "quantiles") or not _sound(model):
            raise ModelError(f"{where}: the numbers of {model.target} do not fit together: {AGAIN}")


def _sound(model: TargetModel) -> bool:
    """Return whether a target's numbers are finite, in order and of one length."""
    q, shifts = model.quantiles, model.shifts
    numbers = (*q, *shifts, model.calibration.slope, model.calibration.offset, *model.thresholds.values())
    if not _finite(numbers):
        return False
    bounded = all(0 < x < 1 for x in q) and all(0 <= x <= 1 for x in model.thresholds.values())
    return bounded and list(q) == sorted(set(q)) and len(shifts) in {0, len(q)} and model.calibration.slope >= 0


def _finite(values: Iterable[float]) -> bool:
    return all(map(math.isfinite, values))


def _session(model: TargetModel, manifest: Manifest, contents: Mapping[str, bytes], directory: Path) -> Session:
    """Load one graph, compare its shape and its own properties with the manifest, and run it on two rows."""
    path = directory / model.file
    session = Session(contents[model.file], str(path))
    outputs = len(model.quantiles) or 1
    if (session.width, session.outputs) != (len(manifest.features), outputs):
        raise ModelError(
            f"{path}: takes {session.width} features and gives {session.outputs} values, {NAME} says "
            f"{len(manifest.features)} and {outputs}: {AGAIN}"
        )
    said = session.metadata
    if said.get(TARGET_KEY) != model.target or said.get(HASH_KEY) != manifest.feature_hash:
        raise ModelError(
            f"{path}: a graph of {said.get(TARGET_KEY, 'unknown target')!s:.40}, not of {model.target} for these "
            f"features: {AGAIN}"
        )
    for row in (np.full((1, session.width), np.nan, np.float32), np.zeros((1, session.width), np.float32)):
        _try(session, row, path, probability=not model.quantiles)
    return session


def _try(session: Session, row: Vectors, path: Path, *, probability: bool) -> None:
    try:
        raw = session.run(row)
    except Exception as error:
        words = words_of(error)
        raise ModelError(f"{path}: loads but does not run: {words}: {AGAIN}") from error
    if not np.isfinite(raw).all() or (probability and not ((raw >= 0) & (raw <= 1)).all()):
        raise ModelError(f"{path}: gives {raw.tolist()} for a row of unknowns: {AGAIN}")


class Registry(BundleRegistry[Manifest, Bundle]):
    """The directory `models_dir`; `expected` are the features that bundles must be made for (default: ours)."""

    def __init__(self, models_dir: Path, expected: FeatureSet | None = None) -> None:
        super().__init__(models_dir)
        self._expected = expected

    def files(self, directory: Path) -> BundleFiles:
        """Return manifest, the content of each file and the bundle's hash, checked. Raises ModelError."""
        return read_bundle(directory)

    def _loaded(self, directory: Path, files: BundleFiles | None = None) -> Bundle:
        return load_bundle(directory, self._expected, files)
