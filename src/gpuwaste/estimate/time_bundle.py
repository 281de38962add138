"""A site's bundle of step times, and the registry of bundles: models_dir/times, promoted and rolled back as others."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Self

import msgspec
from msgspec import Meta, Struct

from gpuwaste.core.bundle_files import AGAIN, NAME, read_files, sha256_hex
from gpuwaste.core.bundle_registry import TIMES, BundleRegistry
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ModelError, ParseError
from gpuwaste.core.files import write_whole
from gpuwaste.estimate.gp import BLOCKS
from gpuwaste.estimate.time_arrays import pack, unpack
from gpuwaste.estimate.time_model import FitSupport, TimeModel

SCHEMA: Final = 1
FEATURES: Final = tuple(f"{name}:{width}" for name, width in BLOCKS)
GPU_NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,62}\Z"
_Gpu = Annotated[str, Meta(pattern=GPU_NAME)]
CARD: Final = "card.json"
CARD_TEXT: Final = "card.md"


class TimesManifest(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The whole file; the arrays of a type are in GPU.npz."""

    name: str
    created_utc: int
    types: Annotated[dict[_Gpu, FitSupport], Meta(min_length=1, max_length=64)]
    files: dict[str, str]
    features: tuple[str, ...] = FEATURES
    """What programs are compared by; a bundle with other blocks is refused."""
    schema: int = SCHEMA

    @property
    def origin(self) -> str:
        """Where a bundle of step times is from: each is a site's own."""
        return "site"

    @property
    def rows(self) -> int:
        """Programs measured, of all types together."""
        return sum(grounds.programs for grounds in self.types.values())

    def to_json(self) -> bytes:
        """Return the file: keys sorted, so that equal bundles have equal manifests."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=1) + b"\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> Self:
        """Read a manifest; `where` names it in errors. Raises ParseError."""
        what = f"{where}: not the manifest of a bundle of step times"
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"{what}: {error}") from error
        if not isinstance(data, dict) or data.get("schema") != SCHEMA or data.get("features") != list(FEATURES):
            raise ParseError(f"{what} of this version of gpuwaste: train again with gpuwaste estimate train")
        return convert(data, cls, what)


TimesFiles = tuple[TimesManifest, dict[str, bytes], str]


def file_of(gpu: str) -> str:
    """Return the file with the arrays of a type."""
    return f"{gpu}.npz"


class TimeModels(Mapping[str, TimeModel]):
    """The models of a bundle by type of GPU; each is unpacked when it is first asked for. Raises ModelError then."""

    def __init__(self, directory: Path, manifest: TimesManifest, files: Mapping[str, bytes]) -> None:
        self._directory, self._manifest = directory, manifest
        self._packed = {gpu: files[file_of(gpu)] for gpu in manifest.types}
        self._known: dict[str, TimeModel] = {}

    def __getitem__(self, gpu: str) -> TimeModel:
        if gpu not in self._known:
            grounds, where = self._manifest.types[gpu], str(self._directory / file_of(gpu))
            self._known[gpu] = unpack(self._packed[gpu], grounds, where)
        return self._known[gpu]

    def __iter__(self) -> Iterator[str]:
        return iter(self._manifest.types)

    def __len__(self) -> int:
        return len(self._manifest.types)


@dataclass(frozen=True, slots=True)
class TimeBundle:
    """A checked bundle; `hash` is the sha256 of its manifest, which holds that of every file."""

    directory: Path
    manifest: TimesManifest
    hash: str
    models: TimeModels
    card: bytes
    """card.json; empty where the bundle has none."""


def load_times(directory: Path, files: TimesFiles | None = None) -> TimeBundle:
    """Read and check a bundle, or `files` that were read before. Raises ModelError."""
    manifest, contents, digest = files or read_files(directory, TimesManifest.from_json)
    for gpu, grounds in manifest.types.items():
        if file_of(gpu) not in contents or grounds.gpu != gpu:
            raise ModelError(f"{directory / NAME}: {gpu} has no {file_of(gpu)} in the list of files: {AGAIN}")
    models = TimeModels(directory, manifest, contents)
    return TimeBundle(directory, manifest, digest, models, contents.get(CARD, b""))


def write_times(
    directory: Path, name: str, created_utc: int, models: Mapping[str, TimeModel], others: Mapping[str, bytes]
) -> TimesManifest:
    """Write a bundle into a new directory, `others` (the card) beside the arrays. Raises OSError."""
    files = {**others, **{file_of(gpu): pack(model) for gpu, model in models.items()}}
    digests = {file: sha256_hex(data) for file, data in sorted(files.items())}
    types = {gpu: model.grounds for gpu, model in sorted(models.items())}
    manifest = TimesManifest(name=name, created_utc=created_utc, types=types, files=digests)
    directory.mkdir(parents=True)
    for file, data in files.items():
        write_whole(directory / file, data)
    write_whole(directory / NAME, manifest.to_json())
    return manifest


class TimesRegistry(BundleRegistry[TimesManifest, TimeBundle]):
    """The bundles of step times below a site's models_dir."""

    command = "gpuwaste estimate train"

    def __init__(self, models_dir: Path) -> None:
        super().__init__(models_dir / TIMES)

    def files(self, directory: Path) -> TimesFiles:
        """Return manifest, the content of each file and the bundle's hash, checked. Raises ModelError."""
        return read_files(directory, TimesManifest.from_json)

    def _loaded(self, directory: Path, files: TimesFiles | None = None) -> TimeBundle:
        bundle = load_times(directory, files)
        for gpu in bundle.models:
            bundle.models[gpu]
        return bundle


def times_in_use(models_dir: Path) -> Mapping[str, TimeModel]:
    """Return the models of the bundle in use by type of GPU, none where none was promoted. Raises ModelError."""
    directory = TimesRegistry(models_dir).champion()
    return {} if directory is None else load_times(directory).models
