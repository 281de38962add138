"""sacct: the command line that asks for runs, and its rows as JobRecords, read as a stream in constant memory.

Names and submit lines are free text with newlines and any byte in them. They stand before a last column that holds
none, so a row ends where it has all its fields; the client draws a fresh delimiter for each call, which nobody can have
put into a name.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.job import JobRecord
from gpuwaste.slurm.sacct_row import RunRows, SacctRow, is_row_start, row_of
from gpuwaste.slurm.times import format_time

DELIMITER: Final = b"\x1f"
FIELDS: Final = (
    *("JobIDRaw", "JobID", "User", "UID", "Group", "Account", "Partition", "QOS", "State", "Submit", "Start", "End"),
    *("ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "AllocCPUS", "ReqMem", "ReqTRES", "AllocTRES", "NodeList"),
    *("MaxRSS", "TotalCPU", "JobName", "SubmitLine", "ExitCode"),
)
RESTARTS: Final = "Restarts"  # from Slurm 23.11 on
_MAX_ROW_B: Final = 4 * 1024**2
_KEPT_B: Final = 2000


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was set aside: the number of its first line, why, and the beginning of its text."""

    line: int
    reason: str
    raw: str


def sacct_fields(available: Iterable[str]) -> tuple[str, ...]:
    """Return the columns to ask for, given what `sacct --helpformat` names."""
    return (*FIELDS[:-1], RESTARTS, FIELDS[-1]) if RESTARTS in available else FIELDS


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
    lines: Iterable[bytes], cluster: str, fields: Sequence[str] = FIELDS, delimiter: bytes = DELIMITER
) -> Iterator[JobRecord | BadRow]:
    """Yield one JobRecord for each run, its steps folded in, and a BadRow for what cannot be read. Never raises."""
    run: RunRows | None = None
    for item in _rows(lines, fields, delimiter):
        if isinstance(item, BadRow):
            yield item
        elif not item.is_step:
            if run is not None:
                yield _finish(run, cluster)
            run = RunRows(item)
        elif run is None or not run.add_step(item):
            yield BadRow(item.line, "a step without its job before it", item.raw[:_KEPT_B])
    if run is not None:
        yield _finish(run, cluster)


def _finish(run: RunRows, cluster: str) -> JobRecord | BadRow:
    try:
        return run.record(cluster)
    except ValueError as error:
        return BadRow(run.job.line, str(error), run.job.raw[:_KEPT_B])


def _rows(lines: Iterable[bytes], fields: Sequence[str], delimiter: bytes) -> Iterator[SacctRow | BadRow]:
    """Join the lines of each row: a row is whole when it has all its delimiters."""
    wanted = len(fields) - 1
    pending = b""
    first = seen = number = 0
    for number, line in enumerate(lines, 1):
        count = line.count(delimiter)
        if pending and (seen + count > wanted or len(pending) + len(line) > _MAX_ROW_B):
            if not (is_row_start(line, delimiter) and count <= wanted):
                yield _aside(first, seen + count, wanted, pending + line)
                pending = b""
                continue
            yield _aside(first, seen, wanted, pending)
            pending = b""
        if not pending:
            if not line.strip():
                continue
            if not is_row_start(line, delimiter) or count > wanted:
                yield _aside(number, count, wanted, line)
                continue
            first, seen = number, 0
        pending += line
        seen += count
        if seen == wanted:
            yield row_of(pending, fields, delimiter, first)
            pending = b""
    if pending:
        yield _aside(first, seen, wanted, pending)


def _aside(line: int, seen: int, wanted: int, raw: bytes) -> BadRow:
    text = raw[:_KEPT_B].decode("utf-8", "backslashreplace").rstrip("\n")
    if seen == wanted:
        return BadRow(line, "the first field is no job id", text)
    return BadRow(line, f"{seen + 1} fields where {wanted + 1} were asked", text)
