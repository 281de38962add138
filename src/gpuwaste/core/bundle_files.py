"""A bundle's directory read without trusting it, and the links to the bundles in use and on trial.

Files must be plain, of limited size, and listed with their sha256. Each change of a link is one rename.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Final, TypeVar

from msgspec import Meta

from gpuwaste.core.errors import ModelError, ParseError
from gpuwaste.core.fields import Utc
from gpuwaste.core.files import TEMPORARY, sync_directory
from gpuwaste.core.text import PLAIN_NAME, words_of

NAME: Final = "manifest.json"

MAX_MANIFEST_B: Final = 4 * 1024**2
MAX_FILE_B: Final = 256 * 1024**2
MAX_BUNDLE_B: Final = 1024**3
MAX_FILES: Final = 100
AGAIN: Final = "install the bundle again or promote another one"
CHAMPION: Final = "champion"
CHALLENGER: Final = "challenger"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleManifest:
    """What the manifest of every bundle has; the name becomes that of its directory."""

    name: str
    created_utc: Utc
    files: Annotated[Mapping[str, str], Meta(description="sha256 of each other file of the bundle, hex.")]


M = TypeVar("M", bound=BundleManifest)


def unknown_key(data: Mapping[str, object], kind: type[BundleManifest]) -> str:
    """Return a key of a manifest's JSON that is no field of its type, at most 40 characters; "" for none."""
    return min((name[:40] for name in data.keys() - {field.name for field in fields(kind)}), default="")


def sha256_hex(data: bytes) -> str:
    """Return the digest in the format of a manifest's `files`."""
    return hashlib.sha256(data).hexdigest()


def read_files(directory: Path, parse: Callable[[str, str], M]) -> tuple[M, dict[str, bytes], str]:
    """Return manifest, the content of each file, its own included, and its sha256, which identifies the bundle.

    `parse` makes a manifest from its text and a name for errors; it raises ParseError.

    The directory is opened once, so that a champion swapped meanwhile is read completely or not at all. Raises
    ModelError for a file that is missing, unreadable, oversized, a link, writable by others, or not as listed.
    """
    with _opened(directory) as folder:
        text = _read(folder, directory, NAME, MAX_MANIFEST_B)
        try:
            manifest = parse(text.decode("utf-8"), str(directory / NAME))
        except (ParseError, UnicodeDecodeError) as error:
            raise ModelError(f"{directory / NAME}: {_reason(error, directory)}: {AGAIN}") from error
        contents: dict[str, bytes] = {NAME: text}
        left = MAX_BUNDLE_B
        for name, digest in sorted(_listed(manifest, directory).items()):
            contents[name] = _read(folder, directory, name, min(MAX_FILE_B, left))
            left -= len(contents[name])
            if sha256_hex(contents[name]) != digest:
                raise ModelError(f"{directory / name}: its checksum is not the one in {NAME}: {AGAIN}")
    return manifest, contents, sha256_hex(text)


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    try:
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise ModelError(f"{directory}: cannot be opened: {_cause(error)}: {AGAIN}") from error
    try:
        _private(os.fstat(folder), directory)
        yield folder
    finally:
        os.close(folder)


def _read(folder: int, directory: Path, name: str, limit: int) -> bytes:
    """Return a file's bytes. O_NOFOLLOW: a link could lead out of the directory; O_NONBLOCK: a pipe would block."""
    path = directory / name
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {_cause(error)}: {AGAIN}") from error
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise ModelError(f"{path}: not a regular file: {AGAIN}")
        _private(found, path)
        if found.st_size > limit:
            raise ModelError(f"{path}: {found.st_size} bytes are more than a bundle may have ({limit}): {AGAIN}")
        with os.fdopen(file, "rb", closefd=False) as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {_cause(error)}: {AGAIN}") from error
    finally:
        os.close(file)
    if len(data) > limit:
        raise ModelError(f"{path}: grew beyond {limit} bytes while it was read: {AGAIN}")
    return data


def _private(found: os.stat_result, path: Path) -> None:
    if found.st_mode & stat.S_IWOTH:
        raise ModelError(f"{path}: writable by everybody, so anybody could have changed it: chmod o-w, then check it")


def _listed(manifest: BundleManifest, directory: Path) -> dict[str, str]:
    """Return the manifest's files. Raises ModelError for an invalid list, or one that leads out of the directory."""
    files = manifest.files
    where = directory / NAME
    if len(files) > MAX_FILES:
        raise ModelError(f"{where}: its list of files is not a list of at most {MAX_FILES} names with sha256: {AGAIN}")
    for name in files:
        if name in {"", ".", "..", NAME} or "/" in name or "\0" in name:
            raise ModelError(f"{where}: lists {name[:80]!r}, which is not a file in its directory: {AGAIN}")
    return dict(files)


def _cause(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _reason(error: Exception, directory: Path) -> str:
    return words_of(str(error).removeprefix(f"{directory / NAME}: "))


class BundleLinks:
    """The links of one directory; the caller must hold the registry's lock to change them."""

    def __init__(self, models_dir: Path) -> None:
        self._models_dir = models_dir

    def name_of(self, which: str) -> str | None:
        """Return the name in a link, None where there is no such link. Raises ModelError."""
        link = self._models_dir / which
        try:
            if self._models_dir.stat().st_mode & stat.S_IWOTH:
                raise ModelError(f"{self._models_dir}: writable by everybody: chmod o-w, then check its contents")
            name = os.readlink(link)  # noqa: PTH115 the text itself is checked, not the target
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ModelError(f"{link}: cannot read the link: {error.strerror}: promote a bundle") from error
        if not PLAIN_NAME.fullmatch(name):
            raise ModelError(f"{link}: points outside of {self._models_dir}: remove it and promote a bundle")
        return name

    def since(self, which: str) -> float | None:
        """Return when a link was made, UTC seconds, None where there is no such link."""
        try:
            return (self._models_dir / which).lstat().st_mtime
        except OSError:
            return None

    def point(self, which: str, name: str) -> None:
        """Move a link: a new one is made and renamed over it. Raises OSError."""
        temporary = self._models_dir / f"{TEMPORARY}{os.getpid()}-link"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(name)
        temporary.rename(self._models_dir / which)
        sync_directory(self._models_dir)

    def remove(self, which: str) -> None:
        """Remove a link if it exists. Raises OSError."""
        (self._models_dir / which).unlink(missing_ok=True)
        sync_directory(self._models_dir)
