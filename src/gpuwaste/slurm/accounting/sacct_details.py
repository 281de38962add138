"""The columns of sacct that only analytics reads; one that cannot be read is unknown, and costs nothing else."""

import re
from collections.abc import Callable
from datetime import tzinfo
from typing import Final, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.units import parse_size_b
from gpuwaste.slurm.accounting.accounted_run import JobDetails, StepRecord
from gpuwaste.slurm.accounting.run_details import UNKEPT, StepSums, flag_text, own_text, program_of, short
from gpuwaste.slurm.accounting.sacct_row import SacctRow
from gpuwaste.slurm.formats.times import parse_time_s

_DISK = re.compile(r"(?:^|,)fs/disk=([^,]{0,40})")
_LIMIT: Final = 1 << 62
_DIGITS: Final = 18  # of a number below that
_T = TypeVar("_T")
Unread = dict[str, str]
"""Columns that could not be read: why."""


def details_of(job: SacctRow, sums: StepSums, zone: tzinfo, unread: Unread) -> JobDetails:
    """Return the details of a run; dates without an offset are in `zone`."""
    own_j = _noted(job, "ConsumedEnergyRaw", _amount, unread)
    return JobDetails(
        eligible=_noted(job, "Eligible", lambda text: parse_time_s(text, zone), unread),
        priority=job.whole("Priority"),
        flags=_text(job, "Flags", lambda text: flag_text(text.split(","))),
        reason=_text(job, "Reason", own_text),
        constraints=_text(job, "Constraints", short),
        reservation=_text(job, "Reservation", short),
        n_steps=sums.n_steps,
        energy_j=own_j or sums.energy_j,
        disk_read_b=sums.disk_read_b,
        disk_write_b=sums.disk_write_b,
        program=_program(job),
    )


def _program(job: SacctRow) -> str | None:
    """Return what ties the job to a program: a site may not keep comments, their option is in the submit line then."""
    told = [job.text(name) for name in ("Comment", "SubmitLine") if name in job.values]
    return program_of(*told) if told else None


def add_step(sums: StepSums, row: SacctRow, max_rss_b: int | None, zone: tzinfo, unread: Unread) -> None:
    """Add a step's row to the sums."""
    tasks = row.whole("NTasks")
    sums.add(
        row.step,
        None if row.step == UNKEPT else _step(row, tasks, max_rss_b, zone, unread),
        _noted(row, "ConsumedEnergyRaw", _amount, unread),
        _disk_b(row, "TRESUsageInTot", "AveDiskRead", tasks, unread),
        _disk_b(row, "TRESUsageOutTot", "AveDiskWrite", tasks, unread),
    )


def _step(row: SacctRow, tasks: int | None, max_rss_b: int | None, zone: tzinfo, unread: Unread) -> StepRecord | None:
    """Return the step; None where it has not ended."""
    if _noted(row, "End", lambda text: parse_time_s(text, zone), unread) is None:
        return None
    code, signal = row.exit
    return StepRecord(
        step=row.step,
        name=short(row.text("JobName")),
        start=_noted(row, "Start", lambda text: parse_time_s(text, zone), unread),
        elapsed_s=_elapsed_s(row, unread),
        tasks=tasks,
        max_rss_b=None if max_rss_b is None or max_rss_b >= _LIMIT else max_rss_b,
        state=row.state,
        exit_code=code,
        exit_signal=signal,
    )


def _elapsed_s(row: SacctRow, unread: Unread) -> int | None:
    raw = "ElapsedRaw" in row.values
    return row.elapsed_s if raw else _noted(row, "Elapsed", lambda _: row.elapsed_s, unread)


def _disk_b(row: SacctRow, total: str, mean: str, tasks: int | None, unread: Unread) -> int | None:
    """Return the bytes of all tasks: as told, or the mean of a task times their number."""
    if total in row.values:
        return _noted(row, total, _disk_total, unread)
    each_b = _noted(row, mean, _amount, unread)
    return None if each_b is None or tasks is None else each_b * tasks


def _disk_total(text: str) -> int | None:
    found = _DISK.search(text)
    return _amount(found[1]) if found else None


def _amount(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < _DIGITS:  # nearly all of them
        return int(text)
    value = parse_size_b(text)
    if value >= _LIMIT:
        raise ParseError(f"{text[:40]!r} is larger than any number of Slurm's")
    return value


def _text(row: SacctRow, name: str, read: Callable[[str], str]) -> str | None:
    return read(row.values[name]) if name in row.values else None


def _noted(row: SacctRow, name: str, read: Callable[[str], _T], unread: Unread) -> _T | None:
    text = row.values.get(name)
    if not text:
        return None
    try:
        return read(text)
    except GpuwasteError as error:
        unread.setdefault(name, str(error)[:200])
        return None
