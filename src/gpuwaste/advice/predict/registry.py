"""The bundles of ONNX graphs of a site, in models_dir: gpuwaste.core.bundle_registry with what those bundles hold."""

from pathlib import Path

from gpuwaste.advice.predict.bundle import Bundle, FeatureSet, load_bundle
from gpuwaste.advice.predict.bundle_files import BundleFiles, read_bundle
from gpuwaste.advice.predict.manifest import Manifest
from gpuwaste.core.bundle_files import CHALLENGER, CHAMPION
from gpuwaste.core.bundle_registry import HISTORY, TIMES, WAITS, BundleRegistry

__all__ = ("CHALLENGER", "CHAMPION", "HISTORY", "TIMES", "WAITS", "Registry")


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
