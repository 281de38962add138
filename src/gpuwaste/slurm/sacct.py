"""sacct: the command line that asks for runs, and its rows as JobRecords, read as a stream in constant memory.

Names, submit lines and comments are free text with newlines and any byte in them. They stand before a last column that
holds none, so a row ends where it has all its fields; the client draws a fresh delimiter for each call, which nobody
can have put into a name.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from typing import Final

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.job import JobRecord
from gpuwaste.slurm.sacct_row import RunRows
from gpuwaste.slurm.sacct_rows import BadRow, read_rows
from gpuwaste.slurm.times import format_time

__all__ = ["ADMIN_COMMENT", "DELIMITER", "FIELDS", "RESTARTS", "BadRow", "parse_sacct", "sacct_argv", "sacct_fields"]

DELIMITER: Final = b"\x1f"
ADMIN_COMMENT: Final = "AdminComment"  # free text of administrators, and the token of a verdict
FIELDS: Final = (
    *("JobIDRaw", "JobID", "User", "UID", "Group", "Account", "Partition", "QOS", "State", "Submit", "Start", "End"),
    *("ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "AllocCPUS", "ReqMem", "ReqTRES", "AllocTRES", "NodeList"),
    *("MaxRSS", "TotalCPU", "JobName", "SubmitLine", ADMIN_COMMENT, "ExitCode"),
)
RESTARTS: Final = "Restarts"  # from Slurm 23.11 on
_NEEDED: Final = ("JobIDRaw", "Submit")
_KEPT_B: Final = 2000


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
        raise ParseError(f"sacct's columns lack {', '.join(missing)}: add them to --format")
    run: RunRows | None = None
    for item in read_rows(lines, fields, delimiter):
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
    except GpuwasteError as error:
        return BadRow(run.job.line, str(error), run.job.raw[:_KEPT_B])
