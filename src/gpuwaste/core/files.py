"""Files that are whole or not there, and files that nobody else may read."""

import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError

TEMPORARY: Final = ".gpuwaste-"  # prefix of what a killed writer may leave behind


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file by another name in the same directory, on disk, then rename it. Raises OSError."""
    number, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(number, mode)
            os.fsync(number)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Put a directory's entries on disk: a rename before this may be undone by a power cut."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def read_closed(path: Path, max_bytes: int, what: str = "it", hint: str = "") -> str:
    """Return the first `max_bytes` of a file with tokens that others cannot read. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & stat.S_IRWXO:
                raise ConfigError(f"{path}: everybody can read or change {what}: chmod o= {path}")
            data = file.read(max_bytes)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}{hint}") from error
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: holds characters that no token has") from error
