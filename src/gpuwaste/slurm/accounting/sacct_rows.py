"""The lines of sacct as rows: a row is whole when it has all its separators, however many lines it takes.

Where the last column is free text, the lines that follow and begin no row belong to it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.text import decoded
from gpuwaste.slurm.accounting.sacct_row import RowIds, SacctRow, row_of
from gpuwaste.slurm.accounting.sacct_shape import FREE, has_free

_MAX_ROW_B: Final = 4 * 1024**2
_KEPT_B: Final = 2000


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was set aside: the number of its first line, why, and the beginning of its text.

    Where `field` names one, only that field of the row is unknown, and its run comes as well.
    """

    line: int
    reason: str
    raw: str
    field: str = ""


def read_rows(lines: Iterable[bytes], fields: Sequence[str], delimiter: bytes) -> Iterator[SacctRow | BadRow]:
    """Yield each row, or a bad row for lines that are none."""
    joiner = _Joiner(fields, delimiter)
    for number, line in enumerate(lines, 1):
        if joiner.is_row(line):  # nearly all rows are one line
            yield joiner.row(number, line)
        else:
            yield from joiner.feed(number, line)
    yield from joiner.end()


class _Joiner:
    """The lines of one row so far."""

    def __init__(self, fields: Sequence[str], delimiter: bytes) -> None:
        self._parts: list[bytes] = []
        self._first = 0
        self._fields = fields
        self._delimiter = delimiter
        self._wanted = len(fields) - 1
        self._ids = RowIds.of(fields, delimiter)
        self._open_end = fields[-1] in FREE
        # A row that is not one line goes on up to the next row: its free text may have separators and newlines.
        self._free = has_free(fields, "JobIDRaw")
        self._seen = self._size = 0

    def is_row(self, line: bytes) -> bool:
        """Whether a line is a whole row by itself."""
        fills = not self._parts and line.count(self._delimiter) == self._wanted and not self._open_end
        return fills and len(line) <= _MAX_ROW_B and self._ids.starts(line)

    def row(self, number: int, line: bytes) -> SacctRow | BadRow:
        """Return the row that a line is."""
        self._first = number
        return row_of(line, self._fields, self._delimiter, number) or self._aside(line)

    def feed(self, number: int, line: bytes) -> Iterator[SacctRow | BadRow]:
        """Take a line, and yield what it completes or ends."""
        if self._ids.is_header(line):
            yield from self.end()
            return
        starts = self._starts(line)
        if self._parts:
            if self._takes(line, starts=starts):
                yield from self._add(line)
                return
            # Too many fields. Where the line begins a row, the one before it lost its end and must not swallow it.
            yield self._settled() if starts else self._settled(line)
            if not starts:
                return
        yield from self._begin(number, line, starts=starts)

    def end(self) -> Iterator[SacctRow | BadRow]:
        """Yield the last row."""
        if self._parts:
            yield self._settled()

    def _begin(self, number: int, line: bytes, *, starts: bool) -> Iterator[SacctRow | BadRow]:
        if not line.strip():
            return
        self._first = number
        if not starts:
            yield self._aside(line)
        elif self.is_row(line):
            yield self.row(number, line)
        else:
            yield from self._add(line)

    def _starts(self, line: bytes) -> bool:
        few = self._free or line.count(self._delimiter) <= self._wanted
        return few and self._ids.starts(line)

    def _takes(self, line: bytes, *, starts: bool) -> bool:
        """Whether a line belongs to the row so far: it fills it, or begins no row and is in its free text."""
        few = self._seen + line.count(self._delimiter) <= self._wanted
        return (few or (self._free and not starts)) and self._size + len(line) <= _MAX_ROW_B

    def _add(self, line: bytes) -> Iterator[SacctRow | BadRow]:
        self._parts.append(line)
        self._seen += line.count(self._delimiter)
        self._size += len(line)
        if self._seen == self._wanted and not self._free:
            yield self._settled()

    def _settled(self, line: bytes = b"") -> SacctRow | BadRow:
        """Return the row that the lines so far and one more are, its surplus separators in its free text."""
        raw = b"".join([*self._parts, line])
        fits = self._free or raw.count(self._delimiter) == self._wanted
        row = row_of(raw, self._fields, self._delimiter, self._first) if fits and len(raw) <= _MAX_ROW_B else None
        if row is None:
            return self._aside(line)
        self._take()
        return row

    def _aside(self, line: bytes = b"") -> BadRow:
        raw = self._take() + line
        seen = raw.count(self._delimiter)
        reason = f"{seen + 1} fields where {self._wanted + 1} were asked"
        if printed := self._ids.unknown(raw):
            reason = f"JobID {printed} of an array or het job does not tell its number: add JobIDRaw to --format"
        elif seen == self._wanted:
            reason = "JobIDRaw is no job id"
        return BadRow(self._first, reason, decoded(raw[:_KEPT_B]))

    def _take(self) -> bytes:
        raw = b"".join(self._parts)
        self._parts, self._seen, self._size = [], 0, 0
        return raw
