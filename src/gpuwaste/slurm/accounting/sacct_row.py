"""One row of sacct by its columns: the job's own or a step's."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.text import decoded
from gpuwaste.slurm.accounting.sacct_shape import settle
from gpuwaste.slurm.formats.no_value import NO_NUMBERS
from gpuwaste.slurm.formats.times import parse_cpu_s

_ID = re.compile(rb"\d{1,10}(?:\.[\w+]{1,32})?")
# An id of an array or a heterogeneous job as JobID has it: 3_1, 3_[0-9%2], 4+1, 3_1.batch.
_PRINTED = re.compile(rb"\d{1,10}(?:_\d{1,10}|_\[[^\]\n]{0,4096}\]|\+\d{1,10})(?:\.[\w+]{1,32})?")
_HEADERS = frozenset({b"jobid", b"jobidraw"})
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_EXIT = re.compile(r"(\d{1,10}):(\d{1,10})", re.ASCII)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SacctRow:
    """One row by column name; `line` is the number of its first line."""

    line: int
    values: dict[str, str]
    raw: str
    job_id: int  # the raw id of the job that the row belongs to
    step: str  # 0, batch, extern, interactive; "" for the job's own row
    is_step: bool

    def text(self, name: str) -> str:
        """Return a column, "" where it was not asked for."""
        return self.values.get(name, "")

    def read(self, name: str, parse: Callable[[str], _T]) -> _T:
        """Parse a column. Raises ParseError naming it."""
        try:
            return parse(self.text(name))
        except GpuwasteError as error:
            raise ParseError(f"{name}: {error}") from error

    def whole(self, name: str) -> int | None:
        """Return a column of digits as a number, None for anything else and for Slurm's "no number"."""
        value = int(self.text(name)) if _WHOLE.fullmatch(self.text(name)) else None
        return None if value in NO_NUMBERS else value

    @property
    def state(self) -> str:
        """The state without its sender ("CANCELLED by 1001") and its mark for cut off."""
        return (self.text("State").split() or [""])[0].rstrip("+")

    @property
    def exit(self) -> tuple[int | None, int | None]:
        """Exit code and signal."""
        match = _EXIT.fullmatch(self.text("ExitCode"))
        return (int(match[1]), int(match[2])) if match else (None, None)

    @property
    def elapsed_s(self) -> int | None:
        """The seconds without suspensions, from whichever of the two columns is there. Raises ParseError."""
        if "ElapsedRaw" in self.values:
            return self.whole("ElapsedRaw")
        seconds = self.read("Elapsed", parse_cpu_s)
        return None if seconds is None else int(seconds)


@dataclass(frozen=True, slots=True)
class RowIds:
    """How a line's job id tells what the line is; `column` is the place of JobIDRaw.

    `printed`: the file has JobID alone, so that rows of arrays and heterogeneous jobs begin with ids as printed.
    """

    delimiter: bytes
    column: int
    printed: bool

    @classmethod
    def of(cls, fields: Sequence[str], delimiter: bytes) -> Self:
        """Return what goes for lines of these columns."""
        return cls(delimiter, fields.index("JobIDRaw"), "JobID" not in fields)

    def starts(self, line: bytes) -> bool:
        """Tell whether a line has a job or step id, and a delimiter after it, in its column."""
        text = self._text(line)
        return text is not None and (_ID.fullmatch(text) is not None or self._is_printed(text))

    def begins_job(self, line: bytes) -> bool:
        """Tell whether a line begins a job's own row, with its number."""
        return (self._text(line) or b"").isdigit()

    def unknown(self, line: bytes) -> str:
        """Return the id as printed where the line has that alone, else ""."""
        text = self._text(line)
        return text.decode("ascii") if text is not None and self._is_printed(text) else ""

    def is_header(self, line: bytes) -> bool:
        """Tell whether a line is a header: of several files that were joined each has its own."""
        return (self._text(line) or b"").lower() in _HEADERS

    def _text(self, line: bytes) -> bytes | None:
        parts = line.split(self.delimiter, self.column + 1)
        return parts[self.column] if len(parts) == self.column + 2 else None

    def _is_printed(self, text: bytes) -> bool:
        return self.printed and _PRINTED.fullmatch(text) is not None


def row_of(raw: bytes, fields: Sequence[str], delimiter: bytes, line: int) -> SacctRow | None:
    """Split a whole row; bytes that are no UTF-8 become escapes, so that the text can be stored anywhere.

    None where it has more separators than its columns of free text can explain, or no raw id.
    """
    text = decoded(raw.removesuffix(b"\n").removesuffix(b"\r")).replace("\0", "")
    parts: list[str] | None = text.split(delimiter.decode("utf-8"))
    if parts is not None and len(parts) != len(fields):
        parts = settle(parts, fields, delimiter.decode("utf-8"))
    if parts is None:
        return None
    values = dict(zip(fields, parts, strict=True))
    if _ID.fullmatch(values["JobIDRaw"].encode()) is None:
        return None
    job_id, dot, step = values["JobIDRaw"].partition(".")
    return SacctRow(line, values, text, int(job_id), step, bool(dot))
