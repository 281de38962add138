"""The files of a bundle of ONNX graphs, read without trusting their directory."""

from pathlib import Path
from typing import Final

from gpuwaste.advice.predict.manifest import Manifest
from gpuwaste.core import bundle_files

AGAIN: Final = bundle_files.AGAIN
BundleFiles = tuple[Manifest, dict[str, bytes], str]


def read_bundle(directory: Path) -> BundleFiles:
    """Return manifest, the content of each file, its own included, and its sha256, which stands for the whole bundle.

    Raises ModelError (gpuwaste.core.bundle_files).
    """
    return bundle_files.read_files(directory, Manifest.from_json)
