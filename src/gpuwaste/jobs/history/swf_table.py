"""A log in Standard Workload Format as a JobTable, with the facts of the log."""

from pathlib import Path
from typing import Final, NamedTuple

from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.job_table import JobTable, table_of
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.formats.log_file import read_lines
from gpuwaste.slurm.formats.swf_log import SwfFacts, read_swf

KEPT: Final = 1000  # bad rows; facts.bad counts them all


class SwfLog(NamedTuple):
    """A log that was read: n jobs, its facts, and its first bad rows."""

    table: JobTable
    facts: SwfFacts
    bad: tuple[BadRow, ...]


def swf_table(path: Path, cluster: str = "") -> SwfLog:
    """Read a log, plain or compressed; `cluster` is its file's name where it is not given.

    A repeated run (same number, same start) counts once; the second is a bad row, of line 0. Raises UsageError where
    the file cannot be opened and NoDataError where there is no job in it.
    """
    facts, rows = read_swf(read_lines(path), cluster or path.name.partition(".swf")[0])
    jobs: list[JobRecord] = []
    seen = set()
    bad: list[BadRow] = []
    for row in rows:
        if isinstance(row, JobRecord) and row.run_key not in seen:
            seen.add(row.run_key)
            jobs.append(row)
            continue
        if isinstance(row, JobRecord):
            facts.bad += 1
            row = BadRow(0, f"job {row.job_id} is listed twice with the same start", "")  # noqa: PLW2901 it is one
        if len(bad) < KEPT:
            bad.append(row)
    if not jobs:
        reason = f": line {bad[0].line}: {bad[0].reason}" if bad else ""
        raise NoDataError(f"{path}: contains no job{reason}: is it in Standard Workload Format?")
    return SwfLog(table_of(jobs, end_rule="accounting" if facts.waits_known else "submit + run"), facts, tuple(bad))
