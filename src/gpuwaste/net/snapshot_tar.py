"""A directory of plain files as a tar, and back: the format in which the hub sends the history state to an advisor."""

import re
import shutil
import tarfile
from pathlib import Path
from typing import BinaryIO, Final

from gpuwaste.core.errors import StoreError, WireError

_NAME: Final = re.compile(r"[a-z][a-z0-9_.]{0,63}", re.ASCII)
_MAX_FILES: Final = 32


def write_tar(directory: Path, file: BinaryIO) -> None:
    """Write the files of a directory. Raises StoreError."""
    try:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for path in sorted(directory.iterdir()):
                tar.add(path, path.name, recursive=False)
    except OSError as error:
        raise StoreError(f"{directory}: cannot be packed: {error.strerror or error}") from error


def read_tar(file: BinaryIO, directory: Path) -> None:
    """Unpack plain files into `directory`, which is replaced completely. Raises WireError, StoreError."""
    fresh, old = directory.with_name(f"{directory.name}.new"), directory.with_name(f"{directory.name}.old")
    try:
        for path in (fresh, old):
            shutil.rmtree(path, ignore_errors=True)
        fresh.mkdir(parents=True, mode=0o700)
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for count, member in enumerate(tar):
                plain = member.isreg() and not member.issparse() and _NAME.fullmatch(member.name)
                source = tar.extractfile(member) if plain else None
                if source is None or count >= _MAX_FILES:
                    raise WireError(
                        f"the snapshot contains {member.name[:64]!r}, which is not a file of the job history"
                    )
                with (fresh / member.name).open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
        if directory.exists():
            directory.rename(old)
        fresh.rename(directory)
        shutil.rmtree(old, ignore_errors=True)
    except tarfile.TarError as error:
        raise WireError(f"the snapshot cannot be unpacked: {error}: is this the hub? See hub_url") from error
    except OSError as error:
        raise StoreError(f"{directory}: cannot be written: {error.strerror or error}") from error
