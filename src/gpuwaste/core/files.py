"""Files that are whole or not there: what a killed writer leaves never looks like a result."""

import os
import tempfile
from pathlib import Path
from typing import Final

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
