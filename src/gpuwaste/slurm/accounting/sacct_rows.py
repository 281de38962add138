"""sacct: the command line that lists runs, and its rows as JobRecords, read as a stream in constant memory.

A row is complete when it has all its separators, however many lines it takes. Where the last column is free text, the
lines that follow and do not begin a row belong to it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Final

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.text import decoded
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_row import FREE, RowIds, SacctRow, has_free, row_of
from gpuwaste.slurm.accounting.sacct_run import RunRows
from gpuwaste.slurm.formats.slurm_times import format_time

DELIMITER: Final = b"\x1f"
ADMIN_COMMENT: Final = "AdminComment"  # free text of administrators, and the token of a verdict
FIELDS: Final = (
    *("JobIDRaw", "JobID", "User", "UID", "Group", "Account", "Partition", "QOS", "State", "Submit", "Start", "End"),
    *("ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "AllocCPUS", "ReqMem", "ReqTRES", "AllocTRES", "NodeList"),
    *("MaxRSS", "TotalCPU", "JobName", "SubmitLine", ADMIN_COMMENT, "ExitCode"),
)
MORE_FIELDS: Final = (  # Restarts is new in Slurm 23.11; of the user's Comment only a tie to a program is taken
    *("Comment", "Restarts", "Eligible", "Priority", "Flags", "Reason", "Constraints", "Reservation"),
    *("ConsumedEnergyRaw", "NTasks", "TRESUsageInTot", "TRESUsageInMax", "TRESUsageOutTot"),
)
_NEEDED: Final = ("JobIDRaw", "Submit")
_KEPT_B: Final = 2000
_MAX_ROW_B: Final = 4 * 1024**2


def sacct_fields(available: Iterable[str]) -> tuple[str, ...]:
    """Return the columns to request, given those that `sacct --helpformat` lists."""
    known = frozenset(available)
    own = (name for name in FIELDS[:-1] if name != ADMIN_COMMENT or name in known)
    return (*own, *(name for name in MORE_FIELDS if name in known), FIELDS[-1])


def sacct_argv(
    start: int, end: int, fields: Sequence[str] = FIELDS, delimiter: bytes = DELIMITER, cluster: str = ""
) -> list[str]:
    """Return the command for all users' runs that overlap [start, end], UTC seconds; run it under TZ=UTC.

    `cluster` is another cluster of the same slurmdbd; without it sacct lists the runs of the host's own.
    """
    return [
        *("sacct", "--allusers", "--duplicates", "--parsable2", "--noheader", "--noconvert"),
        f"--delimiter={delimiter.decode('ascii')}",
        f"--starttime={format_time(start)}",
        f"--endtime={format_time(end)}",
        f"--format={','.join(fields)}",
        *([f"--clusters={cluster}"] if cluster else []),
    ]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A rejected row: the number of its first line, the reason, and the beginning of its text.

    With `field`, only that field of the row is unknown, and its run is returned as well.
    """

    line: int
    reason: str
    raw: str
    field: str = ""


def parse_sacct(
    lines: Iterable[bytes],
    cluster: str,
    fields: Sequence[str] = FIELDS,
    delimiter: bytes = DELIMITER,
    zone: tzinfo = UTC,
) -> Iterator[JobRecord | BadRow]:
    """Yield one JobRecord per run, its steps folded in, and a BadRow for each row or detail that cannot be read.

    `fields` are the columns of the lines, JobIDRaw and Submit among them; dates without an offset are in `zone`. A
    column Cluster, where there is one, names the cluster. Raises ParseError where a needed column is missing, but
    never because of the lines.
    """
    missing = [name for name in _NEEDED if name not in fields]
    if missing:
        raise ParseError(f"sacct's columns lack {', '.join(missing)}: add them to --format")
    run: RunRows | None = None
    for item in _read_rows(lines, fields, delimiter):
        if isinstance(item, BadRow):
            yield item
        elif not item.is_step:
            if run is not None:
                yield from _finish(run, cluster)
            run = RunRows(item, zone)
        elif run is None or not run.add_step(item):
            yield BadRow(item.line, "a step without a line of its job before it", item.raw[:_KEPT_B])
    if run is not None:
        yield from _finish(run, cluster)


def _finish(run: RunRows, cluster: str) -> Iterator[JobRecord | BadRow]:
    try:
        record = run.record(cluster)
    except GpuwasteError as error:
        yield BadRow(run.job.line, str(error), run.job.raw[:_KEPT_B])
        return
    for name, reason in run.unread.items():
        yield BadRow(run.job.line, f"{name}: {reason}", run.job.raw[:_KEPT_B], name)
    yield record


def _read_rows(lines: Iterable[bytes], fields: Sequence[str], delimiter: bytes) -> Iterator[SacctRow | BadRow]:
    """Yield each row, or a bad row for lines that are not one."""
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
        # A row that is not one line continues up to the next row: its free text may have separators and newlines.
        self._free = has_free(fields, "JobIDRaw")
        self._seen = self._size = 0

    def is_row(self, line: bytes) -> bool:
        """Whether a line is one complete row."""
        fills = not self._parts and line.count(self._delimiter) == self._wanted and not self._open_end
        return fills and len(line) <= _MAX_ROW_B and self._ids.starts(line)

    def row(self, number: int, line: bytes) -> SacctRow | BadRow:
        """Return the row that a line is."""
        self._first = number
        return row_of(line, self._fields, self._delimiter, number) or self._aside(line)

    def feed(self, number: int, line: bytes) -> Iterator[SacctRow | BadRow]:
        """Take a line, and yield the rows that it completes or ends."""
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
        """Whether a line belongs to the row so far: it completes it, or begins no row and is in its free text."""
        few = self._seen + line.count(self._delimiter) <= self._wanted
        return (few or (self._free and not starts)) and self._size + len(line) <= _MAX_ROW_B

    def _add(self, line: bytes) -> Iterator[SacctRow | BadRow]:
        self._parts.append(line)
        self._seen += line.count(self._delimiter)
        self._size += len(line)
        if self._seen == self._wanted and not self._free:
            yield self._settled()

    def _settled(self, line: bytes = b"") -> SacctRow | BadRow:
        """Return the row made of the lines so far and one more, its surplus separators in its free text."""
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
        reason = f"{seen + 1} fields instead of {self._wanted + 1}"
        if printed := self._ids.unknown(raw):
            reason = f"JobID {printed} of an array or het job has no job number: add JobIDRaw to --format"
        elif seen == self._wanted:
            reason = "JobIDRaw is not a job id"
        return BadRow(self._first, reason, decoded(raw[:_KEPT_B]))

    def _take(self) -> bytes:
        raw = b"".join(self._parts)
        self._parts, self._seen, self._size = [], 0, 0
        return raw
