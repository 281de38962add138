"""Raw pages next to the store: each compressed in a file named by its digest, so that a page is kept once."""

import hashlib
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import sync_directory
from gpuwaste.core.text import decoded
from gpuwaste.store.hub.backup_format import pages_folder

LEVEL: Final = 1  # of zlib: level 6 takes five times as long for a quarter less
_SCRATCH: Final = "scratch"


@dataclass(frozen=True, slots=True)
class Kept:
    """A page that is on disk: SHA-256 of its bytes, their number, and the bytes of the file."""

    digest: str
    size_b: int
    packed_b: int


class PageFiles:
    """The folder of a store's pages."""

    def __init__(self, store: Path) -> None:
        self.folder = pages_folder(store)
        self.scratch = self.folder / _SCRATCH

    def prepare(self) -> None:
        """Make the folders and remove unfinished files of a killed import. Raises StoreError."""
        try:
            self.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            for file in self.scratch.iterdir():
                file.unlink()
        except OSError as error:
            raise StoreError(f"{self.folder}: cannot be used for raw pages: {error.strerror}") from error

    def keep(self, data: bytes) -> Kept:
        """Write a page; it is on disk when this returns. Raises StoreError."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        try:
            if path.exists():
                return Kept(digest, len(data), path.stat().st_size)
            packed = zlib.compress(data, LEVEL)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            unfinished = self.scratch / f"{digest}.{os.getpid()}"
            with unfinished.open("wb") as file:
                file.write(packed)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            sync_directory(path.parent)
        except OSError as error:
            raise StoreError(f"{path}: the raw page cannot be written: {error.strerror}") from error
        return Kept(digest, len(data), len(packed))

    def has(self, digest: str) -> bool:
        """Return whether a page exists: an administrator may have removed it."""
        return self._path(digest).exists()

    def read(self, digest: str) -> bytes:
        """Return a page's bytes. Raises StoreError where it is gone or damaged."""
        path = self._path(digest)
        try:
            data = zlib.decompress(path.read_bytes())
        except OSError as error:
            raise StoreError(f"{path}: the raw page cannot be read: {error.strerror}") from error
        except zlib.error as error:
            raise StoreError(f"{path}: the raw page is damaged: {error}: import its source again") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError(f"{path}: the raw page is damaged (its checksum differs): import its source again")
        return data

    def remove(self, digest: str) -> None:
        """Remove a page that is no longer referenced."""
        self._path(digest).unlink(missing_ok=True)

    def remove_named(self, names: Callable[[str], bool], *, only_count: bool) -> int:
        """Remove the pages whose text names a person, or only count them; return how many. Raises StoreError."""
        removed = 0
        for path in sorted(self.folder.glob("[0-9a-f][0-9a-f]/*.z")):
            if names(decoded(self.read(path.stem))):
                removed += 1
                if not only_count:
                    self.remove(path.stem)
        return removed

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / f"{digest}.z"
