"""Simulations that `gpuwaste simulate run --save` wrote for the hub's pages, one JSON file each, and their readers."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Self, TypeVar

import msgspec
from msgspec import Meta, Struct

from gpuwaste.core.config import Config
from gpuwaste.core.errors import NoDataError, StoreError
from gpuwaste.core.files import open_plain, write_whole
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import FORBIDDEN, NOT_FOUND, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.typed import decode
from gpuwaste.show.view_document import ViewDocument

DIRECTORY: Final = "simulations"
MAX_B: Final = 16 << 20
MAX_LISTED: Final = 200
_ID: Final = re.compile(r"[0-9a-f]{12}", re.ASCII)
_MODE: Final = 0o640

Kept = TypeVar("Kept")


class KeptSimulation(Struct, kw_only=True, frozen=True):
    """One simulation as it is kept; the rest of the file is for programs."""

    id: Annotated[str, Meta(pattern=r"^[0-9a-f]{12}\Z")]
    at: Annotated[int, Meta(description="When it was kept, UTC seconds.")]
    title: Annotated[str, Meta(max_length=400)]
    view: ViewDocument


class KeptEntry(Struct, kw_only=True, frozen=True):
    """One simulation in the list."""

    id: str
    at: int
    title: str


def write(directory: Path, kept: KeptSimulation, document: Any) -> Path:
    """Write a simulation with its full document; returns its file. Raises StoreError."""
    path = directory / f"{kept.id}.json"
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        data = {**msgspec.to_builtins(kept), "document": document}
        write_whole(path, msgspec.json.encode(data), mode=_MODE)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def read(directory: Path, identity: str) -> KeptSimulation:
    """Return a simulation. Raises NoDataError where there is none of that id, StoreError where it cannot be read."""
    return read_as(directory, identity, KeptSimulation)


def read_as(directory: Path, identity: str, kind: type[Kept]) -> Kept:
    """Return the fields of a file that a type has, such as the `document`. Raises as read()."""
    if not _ID.fullmatch(identity):
        raise NoDataError(f"simulation {identity[:40]!r}: expected 12 digits of 0-9a-f, as --save prints them")
    path = directory / f"{identity}.json"
    try:
        with open_plain(path) as stream:
            data = stream.read(MAX_B + 1)
    except FileNotFoundError as error:
        raise NoDataError(f"{path}: no simulation is saved under this id") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_B:
        raise StoreError(f"{path}: more than {MAX_B >> 20} MB: not a saved simulation; remove the file")
    try:
        return decode(data, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"{path}: not a saved simulation ({str(error)[:200]}); remove the file") from error


def listed(directory: Path) -> list[KeptEntry]:
    """Return the simulations of a directory, newest first; files that cannot be read are left out."""
    return sorted(_entries(directory), key=lambda entry: (-entry.at, entry.id))


def _entries(directory: Path) -> Iterator[KeptEntry]:
    try:
        paths = [path for path in directory.iterdir() if path.suffix == ".json" and _ID.fullmatch(path.stem)]
        newest = sorted(paths, key=lambda path: -path.stat().st_mtime_ns)[:MAX_LISTED]
    except OSError:
        return
    for path in newest:
        try:
            kept = read(directory, path.stem)
        except (NoDataError, StoreError):
            continue
        yield KeptEntry(id=kept.id, at=kept.at, title=kept.title)


class SimulationReads(Part):
    """Reads kept simulations; blocks on files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(Path(parts.get(Config).hub.state_dir) / DIRECTORY)

    def listed(self, scope: Scope) -> list[KeptEntry]:
        """Return what is kept, newest first. Raises Refusal 403 for ordinary users."""
        _allow(scope)
        return listed(self._directory)

    def one(self, scope: Scope, identity: str) -> KeptSimulation:
        """Return one. Raises Refusal: 403 for ordinary users, 404 where it is not kept; StoreError for a bad file."""
        _allow(scope)
        try:
            return read(self._directory, identity)
        except NoDataError as error:
            raise Refusal(NOT_FOUND, "no simulation is saved under this id") from error


def _allow(scope: Scope) -> None:
    if not scope.everything:
        raise Refusal(FORBIDDEN, "only operators may see simulations")
