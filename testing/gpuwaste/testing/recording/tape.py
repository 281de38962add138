"""Tapes: the files to which recording daemons append what they saw, and the recording that is made of them.

Each daemon has a tape of its own; a line is on the tape when it was seen, so that kill -9 loses none.
"""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gpuwaste.testing.recording.format import End, Entry, RecordingError, decode, encode, write_recording


class Tape:
    """A file of entries, appended line by line; threads may share it."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._file = path.open("ab", buffering=0)

    def add(self, entry: Entry) -> None:
        """Append one entry in one write."""
        line = encode(entry) + b"\n"
        with self._lock:
            self._file.write(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_tapes(directory: Path, renamed: Mapping[str, str]) -> Iterator[Entry]:
    """Yield the entries of all tapes of a directory, each text of `renamed` replaced; a torn last line is left out."""
    for path in sorted(directory.glob("*.tape")):
        lines = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines[:-1], start=1):
            entry = decode(_plain(line, renamed), f"{path}, line {number}")
            if not isinstance(entry, End):
                yield entry


def save(path: Path, entries: Iterable[Entry], renamed: Mapping[str, str]) -> int:
    """Write a recording without the texts of `renamed` (this machine's name and paths); returns its bytes."""
    clean: list[Entry] = []
    for entry in entries:
        found = decode(_plain(encode(entry), renamed), str(path))
        if isinstance(found, End):
            raise RecordingError(f"{path}: an end stands in the middle of a recording")
        clean.append(found)
    write_recording(path, clean)
    return path.stat().st_size


def _plain(line: bytes, renamed: Mapping[str, str]) -> bytes:
    for text, name in renamed.items():
        # Whole words only: a host's name may be a part of any other word.
        line = re.sub(rb"(?<![\w-])" + re.escape(text.encode()) + rb"(?![\w-])", name.encode(), line)
    return line
