"""One row of sacct by its columns, of a job or a step, also where a text in it holds separators.

Only a column of free text can hold a separator. The other columns are recognized by their form; a row that fits in
several ways is not read.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice
from typing import Final, Self, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.text import decoded
from gpuwaste.slurm.accounting.requested import NO_NUMBERS
from gpuwaste.slurm.formats.slurm_times import parse_cpu_s

_ID = re.compile(rb"\d{1,10}(?:\.[\w+]{1,32})?")
# An id of an array or a heterogeneous job as printed in JobID: 3_1, 3_[0-9%2], 4+1, 3_1.batch.
_PRINTED = re.compile(rb"\d{1,10}(?:_\d{1,10}|_\[[^\]\n]{0,4096}\]|\+\d{1,10})(?:\.[\w+]{1,32})?")
_HEADERS = frozenset({b"jobid", b"jobidraw"})
_MAX_DIGITS: Final = 15
_EXIT = re.compile(r"(\d{1,10}):(\d{1,10})", re.ASCII)
_T = TypeVar("_T")
FREE: Final = frozenset(
    {"JobName", "SubmitLine", "AdminComment", "Comment", "systemcomment", "workdir", "extra", "Constraints"}
    | {"stdin", "stdout", "stderr", "container"}
)
_TIME = r"|\d{1,12}|\d{4}-\d\d-\d\d[T ][\d:+Z-]{1,20}|Unknown|None|N/A"
_AMOUNT = r"|[\d:.-]{1,24}|UNLIMITED|Partition_Limit|INVALID"
_TRES = r"|[\w./-]+(?::[\w.-]+)*=[\w.]+(?:,[\w./-]+(?::[\w.-]+)*=[\w.]+)*"
_SHAPES: Final = {
    "JobIDRaw": r"\d{1,10}(?:\.[\w+]{1,32})?",
    "State": r"|[A-Z_]{1,20}\+?(?: by \d{1,10})?",
    "ExitCode": r"|\d{1,10}:\d{1,10}",
    "ReqMem": r"|\?|[\d.]{1,24}[KMGTP]?[nc]?",
    "MaxRSS": r"|[\d.]{1,24}[KMGTP]?",
    **dict.fromkeys(("Submit", "Start", "End", "Eligible"), _TIME),
    **dict.fromkeys(("ElapsedRaw", "Elapsed", "TimelimitRaw", "TotalCPU", "Suspended"), _AMOUNT),
    **dict.fromkeys(
        ("NNodes", "AllocCPUS", "ReqCPUS", "ReqNodes", "UID", "Restarts", "Priority", "NTasks"), r"|\d{1,15}"
    ),
    "Flags": r"[A-Za-z_,]{0,200}",
    **dict.fromkeys(("ReqTRES", "AllocTRES"), _TRES),
}
_SHAPED: Final = {name: re.compile(shape, re.ASCII) for name, shape in _SHAPES.items()}
_SUBMITS = re.compile(r"(?:/\S{0,200}/)?(?:sbatch|srun|salloc)(?:\s|$)")
_MAX_SURPLUS: Final = 200
_MAX_WAYS: Final = 1000


def whole_number(text: str) -> int | None:
    """Return digits as a number, None for anything else and for Slurm's "no number"."""
    value = int(text) if text.isdigit() and text.isascii() and len(text) <= _MAX_DIGITS else None
    return None if value in NO_NUMBERS else value


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
        """Return a column, "" where it was not requested."""
        return self.values.get(name, "")

    def read(self, name: str, parse: Callable[[str], _T]) -> _T:
        """Parse a column. Raises ParseError naming it."""
        try:
            return parse(self.text(name))
        except GpuwasteError as error:
            raise ParseError(f"{name}: {error}") from error

    def whole(self, name: str) -> int | None:
        """Return a column of digits as a number, None for anything else and for Slurm's "no number"."""
        return whole_number(self.text(name))

    @property
    def state(self) -> str:
        """The state without its sender ("CANCELLED by 1001") and without the mark for a cut text."""
        return (self.text("State").split() or [""])[0].rstrip("+")

    @property
    def exit(self) -> tuple[int | None, int | None]:
        """Exit code and signal."""
        match = _EXIT.fullmatch(self.text("ExitCode"))
        return (int(match[1]), int(match[2])) if match else (None, None)

    @property
    def elapsed_s(self) -> int | None:
        """The seconds without suspensions, from the one of the two columns that is present. Raises ParseError."""
        if "ElapsedRaw" in self.values:
            return self.whole("ElapsedRaw")
        seconds = self.read("Elapsed", parse_cpu_s)
        return None if seconds is None else int(seconds)


@dataclass(frozen=True, slots=True)
class RowIds:
    """Recognizes lines by their job id; `column` is the index of JobIDRaw.

    `printed`: the file has only JobID, so rows of arrays and heterogeneous jobs begin with ids as printed.
    """

    delimiter: bytes
    column: int
    printed: bool

    @classmethod
    def of(cls, fields: Sequence[str], delimiter: bytes) -> Self:
        """Return the RowIds for lines of these columns."""
        return cls(delimiter, fields.index("JobIDRaw"), "JobID" not in fields)

    def starts(self, line: bytes) -> bool:
        """Return whether a line has a job or step id, and a delimiter after it, in its column."""
        text = self._text(line)
        return text is not None and (_ID.fullmatch(text) is not None or self._is_printed(text))

    def begins_job(self, line: bytes) -> bool:
        """Return whether a line begins a job's own row, with its number."""
        return (self._text(line) or b"").isdigit()

    def unknown(self, line: bytes) -> str:
        """Return the id as printed where the line has only that, else ""."""
        text = self._text(line)
        return text.decode("ascii") if text is not None and self._is_printed(text) else ""

    def is_header(self, line: bytes) -> bool:
        """Return whether a line is a header: files that were concatenated each have their own."""
        return (self._text(line) or b"").lower() in _HEADERS

    def _text(self, line: bytes) -> bytes | None:
        parts = line.split(self.delimiter, self.column + 1)
        return parts[self.column] if len(parts) == self.column + 2 else None

    def _is_printed(self, text: bytes) -> bool:
        return self.printed and _PRINTED.fullmatch(text) is not None


def row_of(raw: bytes, fields: Sequence[str], delimiter: bytes, line: int) -> SacctRow | None:
    """Split a complete row; bytes that are not UTF-8 become escapes, so that the text can be stored anywhere.

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


def settle(parts: Sequence[str], columns: Sequence[str], delimiter: str) -> list[str] | None:
    """Return one text per column; None where the parts do not fit, or fit in several ways."""
    surplus = len(parts) - len(columns)
    blocks = _blocks(tuple(columns))
    places = [place for place, (free, _) in enumerate(blocks) if free]
    if not places or not 0 <= surplus <= _MAX_SURPLUS:
        return None
    found: list[list[str]] = []
    for ways, extra in enumerate(_shares(surplus, len(places))):
        if ways >= _MAX_WAYS:
            return None
        values = _divided(parts, blocks, dict(zip(places, extra, strict=True)), delimiter)
        if values is not None:
            found.append(values)
            if len(found) > 1:
                return None
    return found[0] if found else None


def has_free(columns: Sequence[str], before: str) -> bool:
    """Whether a column may hold a separator, and no column left of the column `before` does."""
    free = [place for place, name in enumerate(columns) if name in FREE]
    return bool(free) and free[0] > columns.index(before)


@cache
def _blocks(columns: tuple[str, ...]) -> list[tuple[bool, tuple[str, ...]]]:
    """Return the columns in groups of consecutive free ones and others."""
    return [(free, tuple(names)) for free, names in groupby(columns, key=FREE.__contains__)]


def _shares(surplus: int, blocks: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to share the surplus among this many blocks."""
    if blocks == 1:
        yield (surplus,)
        return
    for first in range(surplus + 1):
        for rest in _shares(surplus - first, blocks - 1):
            yield (first, *rest)


def _divided(
    parts: Sequence[str], blocks: Sequence[tuple[bool, tuple[str, ...]]], extra: dict[int, int], delimiter: str
) -> list[str] | None:
    rest = iter(parts)
    values: list[str] = []
    for place, (free, names) in enumerate(blocks):
        own = list(islice(rest, len(names) + extra.get(place, 0)))
        if free:
            values += _texts(own, names, delimiter)
        elif all(name not in _SHAPED or _SHAPED[name].fullmatch(text) for name, text in zip(names, own, strict=True)):
            values += own
        else:
            return None
    return values


def _texts(parts: list[str], names: tuple[str, ...], delimiter: str) -> list[str]:
    """Divide a block of free columns: a submit line begins with its command, the rest belongs to the first column."""
    surplus = len(parts) - len(names)
    place = names.index("SubmitLine") if "SubmitLine" in names else 0
    begins = next((at for at in range(place, place + surplus + 1) if _SUBMITS.match(parts[at])), place + surplus)
    first = begins - place if place else surplus  # how many further parts the first column has
    parts = [delimiter.join(parts[: first + 1]), *parts[first + 1 :]]
    end = len(parts) - (len(names) - place - 1)  # columns right of the submit line have a part each
    return [*parts[:place], delimiter.join(parts[place:end]), *parts[end:]]
