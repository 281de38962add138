"""sacct: the command line that asks for runs, and its rows as JobRecords, read as a stream in constant memory.

Names, submit lines and comments are free text with newlines and any byte in them. They stand before a last column that
holds none, so a row ends where it has all its fields; the client draws a fresh delimiter for each call, which nobody
can have put into a name.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.job import JobRecord
from gpuwaste.slurm.sacct_row import RunRows, SacctRow, is_row_start, row_of
from gpuwaste.slurm.times import format_time

DELIMITER: Final = b"\x1f"
ADMIN_COMMENT: Final = "AdminComment"  # free text of administrators, and the token of a verdict
FIELDS: Final = (
    *("JobIDRaw", "JobID", "User", "UID", "Group", "Account", "Partition", "QOS", "State", "Submit", "Start", "End"),
    *("ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "AllocCPUS", "ReqMem", "ReqTRES", "AllocTRES", "NodeList"),
    *("MaxRSS", "TotalCPU", "JobName", "SubmitLine", ADMIN_COMMENT, "ExitCode"),
)
RESTARTS: Final = "Restarts"  # from Slurm 23.11 on
_NEEDED: Final = ("JobIDRaw", "Submit")
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


def sacct_fields(available: Iterable[str]) -> tuple[str, ...]:
    """Return the columns to ask for, given what `sacct --helpformat` names."""
    known = frozenset(available)
    own = (name for name in FIELDS[:-1] if name != ADMIN_COMMENT or name in known)
    return (*own, *((RESTARTS,) if RESTARTS in known else ()), FIELDS[-1])


def sacct_argv(start: int, end: int, fields: Sequence[str] = FIELDS, delimiter: bytes = DELIMITER) -> list[str]:
    """Return the command for all users' runs that overlap [start, end], UTC seconds; run it under TZ=UTC."""
    return [
        *("sacct", "--allusers", "--duplicates", "--parsable2", "--noheader", "--noconvert"),
        f"--delimiter={delimiter.decode('ascii')}",
        f"--starttime={format_time(start)}",
        f"--endtime={format_time(end)}",
        f"--format={','.join(fields)}",
    ]


def parse_sacct(
    lines: Iterable[bytes],
    cluster: str,
    fields: Sequence[str] = FIELDS,
    delimiter: bytes = DELIMITER,
    zone: tzinfo = UTC,
) -> Iterator[JobRecord | BadRow]:
    """Yield one JobRecord for each run, its steps folded in, and a BadRow for what cannot be read.

    `fields` are the columns of the lines, JobIDRaw and Submit among them; dates without an offset are in `zone`. A
    column Cluster, where there is one, names the cluster. Raises ParseError where a needed column is missing, and for
    nothing in the lines.
    """
    missing = [name for name in _NEEDED if name not in fields]
    if missing:
        raise ParseError(f"sacct's columns lack {', '.join(missing)}: ask for them with --format")
    run: RunRows | None = None
    for item in _rows(lines, fields, delimiter):
        if isinstance(item, BadRow):
            yield item
        elif not item.is_step:
            if run is not None:
                yield _finish(run, cluster, zone)
            run = RunRows(item)
        elif run is None or not run.add_step(item):
            yield BadRow(item.line, "a step without its job before it", item.raw[:_KEPT_B])
    if run is not None:
        yield _finish(run, cluster, zone)


def _finish(run: RunRows, cluster: str, zone: tzinfo) -> JobRecord | BadRow:
    try:
        return run.record(cluster, zone)
    except ValueError as error:
        return BadRow(run.job.line, str(error), run.job.raw[:_KEPT_B])


def _rows(lines: Iterable[bytes], fields: Sequence[str], delimiter: bytes) -> Iterator[SacctRow | BadRow]:
    """Join the lines of each row: a row is whole when it has all its delimiters."""
    joiner = _Joiner(fields, delimiter)
    for number, line in enumerate(lines, 1):
        starts = joiner.starts(line)
        if starts and not joiner.parts and joiner.fills(line):  # nearly all rows are one line
            yield row_of(line, fields, delimiter, number)
            continue
        if joiner.parts and not joiner.takes(line):
            # Too many fields. Where the line begins a row, the one before it lost its end and must not swallow it.
            yield joiner.aside() if starts else joiner.aside(line)
            if not starts:
                continue
        if not joiner.parts:
            if not line.strip():
                continue
            joiner.first = number
            if not starts:
                yield joiner.aside(line)
                continue
        joiner.add(line)
        if joiner.whole:
            yield joiner.row()
    if joiner.parts:
        yield joiner.aside()


class _Joiner:
    """The lines of one row so far."""

    def __init__(self, fields: Sequence[str], delimiter: bytes) -> None:
        self.parts: list[bytes] = []
        self.first = 0
        self._fields = fields
        self._delimiter = delimiter
        self._wanted = len(fields) - 1
        self._id_column = fields.index("JobIDRaw")
        self._seen = self._size = 0

    @property
    def whole(self) -> bool:
        return self._seen == self._wanted

    def starts(self, line: bytes) -> bool:
        return line.count(self._delimiter) <= self._wanted and is_row_start(line, self._delimiter, self._id_column)

    def fills(self, line: bytes) -> bool:
        return line.count(self._delimiter) == self._wanted and len(line) <= _MAX_ROW_B

    def takes(self, line: bytes) -> bool:
        return self._seen + line.count(self._delimiter) <= self._wanted and self._size + len(line) <= _MAX_ROW_B

    def add(self, line: bytes) -> None:
        self.parts.append(line)
        self._seen += line.count(self._delimiter)
        self._size += len(line)

    def row(self) -> SacctRow:
        return row_of(self._take(), self._fields, self._delimiter, self.first)

    def aside(self, line: bytes = b"") -> BadRow:
        seen = self._seen + line.count(self._delimiter)
        reason = f"{seen + 1} fields where {self._wanted + 1} were asked"
        if seen == self._wanted:
            reason = "JobIDRaw is no job id"
        return BadRow(self.first, reason, (self._take() + line)[:_KEPT_B].decode("utf-8", "backslashreplace"))

    def _take(self) -> bytes:
        raw = b"".join(self.parts)
        self.parts, self._seen, self._size = [], 0, 0
        return raw
