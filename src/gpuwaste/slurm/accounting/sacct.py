"""sacct: the command line that asks for runs, and its rows as JobRecords, read as a stream in constant memory.

Names, submit lines and comments are free text with newlines and any byte in them. They stand before a last column that
holds none, so a row ends where it has all its fields; the client draws a fresh delimiter for each call, which nobody
can have put into a name.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from typing import Final

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow, read_rows
from gpuwaste.slurm.accounting.sacct_run import RunRows
from gpuwaste.slurm.formats.times import format_time

__all__ = ["ADMIN_COMMENT", "DELIMITER", "FIELDS", "MORE_FIELDS", "BadRow", "parse_sacct", "sacct_argv", "sacct_fields"]

DELIMITER: Final = b"\x1f"
ADMIN_COMMENT: Final = "AdminComment"  # free text of administrators, and the token of a verdict
FIELDS: Final = (
    *("JobIDRaw", "JobID", "User", "UID", "Group", "Account", "Partition", "QOS", "State", "Submit", "Start", "End"),
    *("ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "AllocCPUS", "ReqMem", "ReqTRES", "AllocTRES", "NodeList"),
    *("MaxRSS", "TotalCPU", "JobName", "SubmitLine", ADMIN_COMMENT, "ExitCode"),
)
MORE_FIELDS: Final = (  # Restarts came with Slurm 23.11; of the user's Comment only a tie to a program is taken
    *("Comment", "Restarts", "Eligible", "Priority", "Flags", "Reason", "Constraints", "Reservation"),
    *("ConsumedEnergyRaw", "NTasks", "TRESUsageInTot", "TRESUsageOutTot"),
)
_NEEDED: Final = ("JobIDRaw", "Submit")
_KEPT_B: Final = 2000


def sacct_fields(available: Iterable[str]) -> tuple[str, ...]:
    """Return the columns to ask for, given what `sacct --helpformat` names."""
    known = frozenset(available)
    own = (name for name in FIELDS[:-1] if name != ADMIN_COMMENT or name in known)
    return (*own, *(name for name in MORE_FIELDS if name in known), FIELDS[-1])


def sacct_argv(
    start: int, end: int, fields: Sequence[str] = FIELDS, delimiter: bytes = DELIMITER, cluster: str = ""
) -> list[str]:
    """Return the command for all users' runs that overlap [start, end], UTC seconds; run it under TZ=UTC.

    `cluster` is another one of the same slurmdbd; without it sacct lists the runs of the host's own.
    """
    return [
        *("sacct", "--allusers", "--duplicates", "--parsable2", "--noheader", "--noconvert"),
        f"--delimiter={delimiter.decode('ascii')}",
        f"--starttime={format_time(start)}",
        f"--endtime={format_time(end)}",
        f"--format={','.join(fields)}",
        *([f"--clusters={cluster}"] if cluster else []),
    ]


def parse_sacct(
    lines: Iterable[bytes],
    cluster: str,
    fields: Sequence[str] = FIELDS,
    delimiter: bytes = DELIMITER,
    zone: tzinfo = UTC,
) -> Iterator[JobRecord | BadRow]:
    """Yield one JobRecord for each run, its steps folded in, and a BadRow for what cannot be read, row or detail.

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
                yield from _finish(run, cluster)
            run = RunRows(item, zone)
        elif run is None or not run.add_step(item):
            yield BadRow(item.line, "a step without its job before it", item.raw[:_KEPT_B])
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
