"""A backup of the hub as one tar: first its description, then the files, last the checksums that make it complete.

backup.json has schema, time and number of rows; hub.duckdb is the store; pages/ are its raw pages; corrections.npz is
what predictions learned from their own errors; sums.json has size and SHA-256 of each member before it.
"""

import hashlib
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ParseError, StoreError

FORMAT: Final = 1
ABOUT: Final = "backup.json"
STORE: Final = "hub.duckdb"
SUMS: Final = "sums.json"
PART: Final = 1 << 20
_NAME: Final = re.compile(r"hub\.duckdb|corrections\.npz|pages/[0-9a-f]{2}/[0-9a-f]{64}\.z", re.ASCII)
_MAX_JSON: Final = 512 << 20
_BLOCK: Final = 512


def pages_folder(store: Path) -> Path:
    """Return the folder of the raw pages of a store: hub.duckdb has hub.pages."""
    return store.with_suffix(".pages")


@dataclass(frozen=True, slots=True)
class BackupSource:
    """A file for a backup, open at its beginning or to be opened, and its size."""

    name: str
    file: BinaryIO | Path
    size: int


@dataclass(frozen=True, slots=True)
class About:
    """The description of a backup."""

    schema: int
    version: str
    created_utc: int
    cluster: str
    rows: Mapping[str, int]
    format: int = FORMAT

    def to_json(self) -> dict[str, Any]:
        """Return the member backup.json."""
        return asdict(self)


def tar_parts(about: About, sources: Iterator[BackupSource]) -> Iterator[bytes]:
    """Yield the bytes of a backup; each source is closed after it was read. Raises StoreError."""
    sums: dict[str, list[Any]] = {}
    yield from _small(ABOUT, about.to_json(), sums)
    for source in sources:
        yield from _large(source, sums)
    yield from _small(SUMS, sums, {})
    yield bytes(2 * _BLOCK)


def _small(name: str, value: Mapping[str, Any], sums: dict[str, list[Any]]) -> Iterator[bytes]:
    data = json.dumps(value, sort_keys=True).encode()
    sums[name] = [len(data), hashlib.sha256(data).hexdigest()]
    yield _header(name, len(data)) + data + _padding(len(data))


def _large(source: BackupSource, sums: dict[str, list[Any]]) -> Iterator[bytes]:
    yield _header(source.name, source.size)
    digest, left = hashlib.sha256(), source.size
    with source.file.open("rb") if isinstance(source.file, Path) else source.file as file:
        while left:
            part = file.read(min(PART, left))
            if not part:
                raise StoreError(f"{source.name} became shorter while it was read: run the backup again")
            digest.update(part)
            left -= len(part)
            yield part
    sums[source.name] = [source.size, digest.hexdigest()]
    yield _padding(source.size)


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


def read_backup(file: BinaryIO, where: str, folder: Path | None = None) -> About:
    """Check every byte of a backup and return its description; write its files to `folder`, which is empty, if given.

    Raises StoreError naming what is wrong with it.
    """
    found: dict[str, list[Any]] = {}
    about: About | None = None
    sums: Any = None
    try:
        with tarfile.open(fileobj=file, mode="r|") as tar:
            for member in tar:
                plain = member.type == tarfile.REGTYPE and not member.issparse()
                if sums is not None or not plain or member.name in found:
                    raise StoreError(f"{where}: holds {member.name[:80]!r} in the wrong place: the backup is damaged")
                if about is None:
                    about = _about(_json(tar, member, ABOUT, where, found), where)
                elif member.name == SUMS:
                    sums = _json(tar, member, SUMS, where, {})
                else:
                    _take(tar, member, where, folder, found)
    except (tarfile.TarError, EOFError) as error:
        raise StoreError(f"{where}: is not a complete backup of a hub: {error}") from error
    except OSError as error:
        raise StoreError(f"{where}: cannot be unpacked: {error.strerror or error}") from error
    if about is None or sums is None or STORE not in found:
        raise StoreError(f"{where}: incomplete backup: use another one")
    if sums != found:
        wrong = sorted(n for n in {*sums, *found} if sums.get(n) != found.get(n)) if isinstance(sums, dict) else [SUMS]
        raise StoreError(f"{where}: {wrong[0][:80]} is damaged (SHA-256 differs): use another backup")
    return about


def _json(tar: tarfile.TarFile, member: tarfile.TarInfo, name: str, where: str, found: dict[str, list[Any]]) -> Any:
    if member.name != name or member.size > _MAX_JSON:
        raise StoreError(f"{where}: is not a backup of a hub: it starts with {member.name[:80]!r}")
    source = tar.extractfile(member)
    data = source.read() if source is not None else b""
    found[name] = [len(data), hashlib.sha256(data).hexdigest()]
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where}: {name} cannot be read: it is damaged") from error


def _about(value: Any, where: str) -> About:
    try:
        about = convert(value, About, ABOUT)
    except ParseError as error:
        raise StoreError(f"{where}: {ABOUT} is incomplete: the backup is damaged") from error
    if about.format != FORMAT:
        raise StoreError(f"{where}: has format {about.format}, this version reads {FORMAT}: update gpuwaste")
    return about


def _take(
    tar: tarfile.TarFile, member: tarfile.TarInfo, where: str, folder: Path | None, found: dict[str, list[Any]]
) -> None:
    if not _NAME.fullmatch(member.name):
        raise StoreError(
            f"{where}: holds {member.name[:80]!r}, which does not belong in a backup: it is damaged or was changed"
        )
    source = tar.extractfile(member)
    digest, size = hashlib.sha256(), 0
    target = None
    if folder is not None:
        path = folder / member.name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = path.open("xb")
    try:
        while source is not None and (part := source.read(PART)):
            digest.update(part)
            size += len(part)
            if target is not None:
                target.write(part)
    finally:
        if target is not None:
            target.close()
    found[member.name] = [size, digest.hexdigest()]
