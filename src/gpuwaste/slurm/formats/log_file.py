"""Job history files, plain or compressed, as lines of bounded length."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from gpuwaste.core.errors import ParseError, UsageError

MAX_LINE_B: Final = 4 * 1024**2
_MAGIC: Final[tuple[tuple[bytes, Callable[[IO[bytes]], Any]], ...]] = (
    (b"\xfd7zXZ\x00", lzma.open),
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
)
_DAMAGE: Final = (EOFError, OSError, lzma.LZMAError, zlib.error)


def open_log(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressed by its first bytes, whatever its name. Raises UsageError."""
    try:
        file = path.open("rb")
        head = file.peek(8)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    for magic, unpack in _MAGIC:
        if head.startswith(magic):
            unpacked: IO[bytes] = unpack(file)
            return unpacked
    return file


def read_lines(path: Path) -> Iterator[bytes]:
    """Return the lines with their ends; one longer than 4 MiB is split.

    Raises UsageError at once where the file cannot be opened, and ParseError, after the lines before it, at a place
    where it is cut off or damaged.
    """
    return _lines(path, open_log(path))


def _lines(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while True:
            try:
                line = file.readline(MAX_LINE_B)
            except _DAMAGE as error:
                raise ParseError(f"{path}: is cut off or damaged here: {error}: fetch it again") from error
            if not line:
                return
            yield line
