"""A site's bundle of step times, and the registry of bundles: models_dir/times, promoted and rolled back as others."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.bundle_files import AGAIN, NAME, read_files, sha256_hex
from gpuwaste.core.bundle_registry import TIMES, BundleRegistry
from gpuwaste.core.errors import ModelError
from gpuwaste.core.files import write_whole
from gpuwaste.estimate.time_arrays import pack, unpack
from gpuwaste.estimate.time_manifest import TimesManifest, file_of
from gpuwaste.estimate.time_model import TimeModel

CARD: Final = "card.json"
CARD_TEXT: Final = "card.md"
TimesFiles = tuple[TimesManifest, dict[str, bytes], str]


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
