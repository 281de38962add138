"""The folder of a look: what was read of accounting and of the machine, the text, the pages; nothing else is written.

accounting/ has a compressed file for each slice of time, as sacct printed it behind a line with the columns, which are
the same in all of them and in columns.txt. machine/ has the output of other commands.
"""

import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import UsageError
from gpuwaste.core.files import TEMPORARY, write_whole
from gpuwaste.slurm.accounting.sacct_file import header_columns

_MARKER: Final = ".gpuwaste-look"
_TIME: Final = "%Y-%m-%dT%H%M%SZ"
_SLICE: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d{6}Z)_(\d{4}-\d\d-\d\dT\d{6}Z)\.txt\.gz")
_HEADER: Final = re.compile(rb"JobIDRaw(\x1f[0-9a-f]{16}\x1f)JobID\1[\w\x1f]{1,4000}\n?")
_LEVEL: Final = 1  # of gzip: higher ones take several times as long for little
_CHUNK_B: Final = 1 << 20

Interval = tuple[int, int]
"""Start and end, UTC seconds."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A file with the jobs that overlap [start, end], UTC seconds."""

    start: int
    end: int
    path: Path


@dataclass(frozen=True, slots=True)
class LookFolder:
    """The folder at `path`."""

    path: Path

    @property
    def accounting(self) -> Path:
        """The slices of accounting."""
        return self.path / "accounting"

    @property
    def machine(self) -> Path:
        """The output of the other commands."""
        return self.path / "machine"

    @property
    def pages(self) -> Path:
        """The pages."""
        return self.path / "pages"

    @property
    def text(self) -> Path:
        """The text that is printed."""
        return self.path / "look.txt"

    def prepare(self) -> None:
        """Make the folder, for its owner alone. Raises UsageError for one with files of somebody else."""
        try:
            if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / _MARKER).exists():
                raise UsageError(f"{self.path}: contains other files; name a new or an empty folder")
            for folder in (self.path, self.accounting, self.machine):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.path / _MARKER, b"Written by gpuwaste look.\n")
            for left in self.accounting.glob(f"{TEMPORARY}*"):  # of a look that was killed
                left.unlink()
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be used: {error.strerror}") from error

    def begin(self, columns: Sequence[str], delimiter: bytes) -> None:
        """Keep the line with the columns, unless there is one: it is the same in all slices. Raises UsageError."""
        file = self.accounting / "columns.txt"
        if not file.exists():
            try:
                write_whole(file, delimiter.join(name.encode() for name in columns) + b"\n", mode=0o600)
            except OSError as error:
                raise UsageError(f"{file}: cannot be written: {error.strerror}") from error

    def slices(self) -> list[Slice]:
        """Return the slices, the earliest first."""
        files = list(self.accounting.iterdir()) if self.accounting.is_dir() else []
        named = ((_SLICE.fullmatch(file.name), file) for file in files)
        found = [Slice(_instant(name[1]), _instant(name[2]), file) for name, file in named if name]
        return sorted(found, key=lambda one: (one.start, one.end))

    def gaps(self, start: int, end: int) -> list[Interval]:
        """Return what no slice covers of [start, end], the earliest first."""
        found, at = [], start
        for one in self.slices():
            if one.start > at:
                found.append((at, min(one.start, end)))
            at = max(at, one.end)
            if at >= end:
                return [gap for gap in found if gap[0] < gap[1]]
        return [gap for gap in [*found, (at, end)] if gap[0] < gap[1]]

    def keep(self, start: int, end: int, header: bytes, lines: Iterable[bytes]) -> int:
        """Write a slice; return its number of lines. A slice whose lines end in an error is not kept."""
        name = f"{_name(start)}_{_name(end)}.txt.gz"
        unfinished, count = self.accounting / f"{TEMPORARY}{name}", 0
        try:
            with gzip.open(unfinished, "wb", _LEVEL) as file:
                for chunk in _chunks(header, lines):
                    count += chunk.count(b"\n")
                    file.write(chunk)
            unfinished.chmod(0o600)
            unfinished.replace(self.accounting / name)
        except OSError as error:
            raise UsageError(f"{unfinished}: cannot be written: {error.strerror}") from error
        finally:
            unfinished.unlink(missing_ok=True)
        return count - 1

    def columns(self) -> tuple[tuple[str, ...], bytes, bytes]:
        """Return the columns of the slices, their separator, and the line with both. Raises UsageError."""
        file = self.accounting / "columns.txt"
        try:
            line = file.read_bytes()[:_CHUNK_B]
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror}: not a folder of gpuwaste look?") from error
        found = _HEADER.fullmatch(line)
        names = None if found is None else header_columns(line, found[1])
        if found is None or names is None:
            raise UsageError(f"{file}: is damaged: remove the folder, or name a new one")
        return names, found[1], line


def _chunks(header: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    parts, size = [header], len(header)
    for line in lines:
        parts.append(line)
        size += len(line)
        if size >= _CHUNK_B:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)


def _name(instant: int) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime(_TIME)


def _instant(text: str) -> int:
    return int(datetime.strptime(text, _TIME).replace(tzinfo=UTC).timestamp())
