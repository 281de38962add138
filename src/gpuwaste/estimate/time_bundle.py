"""A site's bundle of step times: its arrays, its files, and the registry of bundles (models_dir/times).

Arrays are a npz file of numbers and texts, no pickle; they are checked before anything is computed. Bundles are
promoted and rolled back like others.
"""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Self

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from gpuwaste.core.bundle_files import AGAIN, NAME, BundleManifest, read_files, sha256_hex, unknown_key
from gpuwaste.core.bundle_registry import TIMES, BundleRegistry
from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ModelError, ParseError
from gpuwaste.core.files import write_whole
from gpuwaste.core.text import words_of
from gpuwaste.estimate.gaussian_process import BLOCKS, KERNEL_SIZE, Kernel, ResidualGp
from gpuwaste.estimate.roofline import PARTS, Roofline
from gpuwaste.estimate.time_model import FitSupport, TimeModel
from gpuwaste.jobs.history.array_file import read_arrays

MAX_PROGRAMS: Final = 3000
"""Of one type: the file contains the inverse of their covariance."""
_MAX_KEYS: Final = 1000
_MAX_UNPACKED_B: Final = 128 * 1024**2
_WIDTH: Final = sum(width for _, width in BLOCKS)
_MOST: Final = 1e30  # a larger number is an error of the file
Arrays = Mapping[str, NDArray[Any]]
SCHEMA: Final = 1
FEATURES: Final = tuple(f"{name}:{width}" for name, width in BLOCKS)
GPU_NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,62}\Z"
_Gpu = Annotated[str, Meta(pattern=GPU_NAME)]
CARD: Final = "card.json"
CARD_TEXT: Final = "card.md"


def pack(model: TimeModel) -> bytes:
    """Return the file of a model; equal models give equal bytes."""
    arrays: dict[str, NDArray[Any]] = {
        **_roofline_arrays("", model.roofline),
        **_roofline_arrays("base_", model.base),
        **_gp_arrays("", model.gp),
    }
    if model.correction is not None:
        arrays |= _gp_arrays("correction_", model.correction)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in sorted(arrays.items()):
            member = zipfile.ZipInfo(f"{name}.npy")  # the date of a ZipInfo is 1980, whenever it is made
            large = name.endswith("inverse")  # half of a symmetric matrix of digits that cannot be compressed
            member.compress_type = zipfile.ZIP_STORED if large else zipfile.ZIP_DEFLATED
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(member, content.getvalue())
    return stream.getvalue()


def unpack(data: bytes, grounds: FitSupport, where: str) -> TimeModel:
    """Return the model of a file. Raises ModelError: one line that names the file."""
    again = "train again or promote another bundle"
    try:
        arrays = read_arrays(data, _MAX_UNPACKED_B)
        roofline, base = _roofline(arrays, ""), _roofline(arrays, "base_")
        correction = _gp(arrays, "correction_") if "correction_kernel" in arrays else None
        return TimeModel(grounds, roofline, base, _gp(arrays, ""), correction)
    except (ParseError, KeyError, ValueError, np.linalg.LinAlgError) as error:
        raise ModelError(f"{where}: not the arrays of a time model: {words_of(error, 200)}: {again}") from error


def _roofline_arrays(prefix: str, roofline: Roofline) -> Arrays:
    return {
        f"{prefix}keys": _texts(roofline.keys),
        f"{prefix}coefficients": roofline.coefficients,
        f"{prefix}constant_s": np.array([roofline.constant_s]),
    }


def _gp_arrays(prefix: str, gp: ResidualGp) -> Arrays:
    return {
        f"{prefix}kernel": gp.kernel.numbers,
        f"{prefix}features": gp.features,
        f"{prefix}families": _texts(gp.families),
        f"{prefix}residuals": gp.residuals,
        f"{prefix}inverse": gp.inverse[np.tril_indices(len(gp.residuals))],
    }


def _roofline(arrays: Arrays, prefix: str) -> Roofline:
    keys = _strings(arrays[f"{prefix}keys"], _MAX_KEYS)
    coefficients = _numbers(arrays[f"{prefix}coefficients"], (len(keys), PARTS), least=0.0)
    constant = _numbers(arrays[f"{prefix}constant_s"], (1,), least=0.0)
    return Roofline(keys, coefficients, float(constant[0]))


def _gp(arrays: Arrays, prefix: str) -> ResidualGp:
    families = _strings(arrays[f"{prefix}families"], MAX_PROGRAMS)
    residuals = _numbers(arrays[f"{prefix}residuals"], (len(families),))
    features = _numbers(arrays[f"{prefix}features"], (len(families), _WIDTH))
    numbers = _numbers(arrays[f"{prefix}kernel"], (KERNEL_SIZE,))
    if np.abs(numbers).max() > 50:  # noqa: PLR2004 a logarithm whose exponential is too large or small for a variance
        raise ValueError("kernel out of range")
    inverse = _symmetric(
        _numbers(arrays[f"{prefix}inverse"], (len(families) * (len(families) + 1) // 2,)), len(families)
    )
    return ResidualGp(Kernel(numbers), features, families, residuals, inverse=inverse)


def _symmetric(half: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the symmetric matrix of a lower half given row by row."""
    found = np.zeros((size, size))
    found[np.tril_indices(size)] = half
    return found + np.tril(found, -1).T


def _texts(values: tuple[str, ...]) -> NDArray[Any]:
    return np.array(values, dtype=np.str_) if values else np.zeros(0, dtype="U1")


def _strings(array: NDArray[Any], most: int) -> tuple[str, ...]:
    if array.ndim != 1 or array.dtype.kind != "U" or len(array) > most:
        raise ValueError(f"texts of {array.dtype} {array.shape}")
    return tuple(str(value) for value in array)


def _numbers(array: NDArray[Any], shape: tuple[int, ...], least: float = -_MOST) -> NDArray[np.float64]:
    if array.dtype != np.float64 or array.shape != shape:
        raise ValueError(f"{array.dtype} {array.shape}, expected float64 {shape}")
    if not (np.isfinite(array).all() and (array >= least).all() and (array <= _MOST).all()):
        raise ValueError("numbers out of range")
    return array


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesManifest(BundleManifest):
    """manifest.json; the arrays of a type are in GPU.npz."""

    types: Annotated[dict[_Gpu, FitSupport], Meta(min_length=1, max_length=64)]
    features: tuple[str, ...] = FEATURES
    """The features by which programs are compared; a bundle with other blocks is rejected."""
    schema: int = SCHEMA

    @property
    def origin(self) -> str:
        """The origin of a bundle of step times: each is a site's own."""
        return "site"

    @property
    def rows(self) -> int:
        """The number of measured programs of all types."""
        return sum(grounds.programs for grounds in self.types.values())

    def to_json(self) -> bytes:
        """Return the file's content: keys sorted, so that equal bundles have equal manifests."""
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
            raise ParseError(f"{what} of this version of gpuwaste: train again with gpuwaste model train --times")
        if unknown := unknown_key(data, cls):
            raise ParseError(f"{what}: object contains unknown field `{unknown}`")
        return convert(data, cls, what)


TimesFiles = tuple[TimesManifest, dict[str, bytes], str]


def file_of(gpu: str) -> str:
    """Return the file with the arrays of a type."""
    return f"{gpu}.npz"


class TimeModels(Mapping[str, TimeModel]):
    """The models of a bundle by type of GPU; each is unpacked at first use, and raises ModelError then."""

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
    """A checked bundle; `hash` is the sha256 of its manifest, which contains that of every file."""

    directory: Path
    manifest: TimesManifest
    hash: str
    models: TimeModels
    card: bytes
    """card.json; empty if the bundle has none."""


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
    """Write a bundle into a new directory, with `others` (the card). Raises OSError."""
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

    command = "gpuwaste model train --times"

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


def contexts_in_use(models_dir: Path) -> Mapping[str, tuple[int, int, int]]:
    """Return least, median and most of what processes needed besides their arrays, by GPU type. Raises ModelError."""
    directory = TimesRegistry(models_dir).champion()
    types = {} if directory is None else load_times(directory).manifest.types
    return {gpu: grounds.contexts_b for gpu, grounds in types.items() if grounds.contexts_b}


def times_in_use(models_dir: Path) -> Mapping[str, TimeModel]:
    """Return the models of the bundle in use by type of GPU, none if none was promoted. Raises ModelError."""
    directory = TimesRegistry(models_dir).champion()
    return {} if directory is None else load_times(directory).models
