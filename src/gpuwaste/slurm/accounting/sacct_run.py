"""Makes an AccountedRun of one run's sacct rows: the job's and its steps'.

A column that only analytics reads and that cannot be parsed is unknown; nothing else is lost.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import partial
from typing import Final, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.units import parse_duration_s, parse_size_b
from gpuwaste.slurm.accounting.accounted_use import MEMORY, UTIL, AccountedUse, StepPeaks, peak_of
from gpuwaste.slurm.accounting.job_record import (
    UNKEPT,
    AccountedRun,
    JobDetails,
    StepRecord,
    StepSums,
    flag_text,
    own_text,
    program_of,
    short,
    within,
)
from gpuwaste.slurm.accounting.jobstats_comment import jobstats_use
from gpuwaste.slurm.accounting.run_amounts import run_amounts
from gpuwaste.slurm.accounting.sacct_row import SacctRow
from gpuwaste.slurm.formats.hostlist import NO_NODES
from gpuwaste.slurm.formats.printed_run import is_interactive, parse_printed, token_of
from gpuwaste.slurm.formats.slurm_times import own_start, parse_cpu_s, parse_interval_s, parse_time_s

_DISK = re.compile(r"(?:^|,)fs/disk=([^,]{0,40})")
_LIMIT: Final = 1 << 62
_DIGITS: Final = 18  # of a number below that
_T = TypeVar("_T")
_Unread = dict[str, str]
"""Columns that could not be read, and why."""


@dataclass(slots=True)
class RunRows:
    """A job's row with the sums over its steps: constant memory for any number of steps."""

    job: SacctRow
    zone: tzinfo = UTC  # of dates without an offset
    max_rss_b: int | None = None
    step_cpu_s: float = 0.0
    steps: set[str] = field(default_factory=set)  # their names, "0" for every numbered one
    problem: str = ""
    unread: dict[str, str] = field(default_factory=dict)  # details that cannot be read, and why
    _sums: StepSums = field(default_factory=StepSums)
    _peaks: StepPeaks = field(default_factory=StepPeaks)

    def add_step(self, row: SacctRow) -> bool:
        """Fold a step in; return false where it belongs to another job."""
        if row.job_id != self.job.job_id:
            return False
        step = row.step
        self.steps.add("0" if step[:1].isdigit() else step)
        try:
            rss = row.read("MaxRSS", lambda text: parse_size_b(text) if text else None)
            cpu_s = row.read("TotalCPU", parse_cpu_s)
        except ParseError as error:
            self.problem = self.problem or f"step {step}: {error}"
            return True
        if rss is not None:
            self.max_rss_b = rss if self.max_rss_b is None else max(rss, self.max_rss_b)
        self.step_cpu_s += cpu_s or 0.0
        _add_step(self._sums, row, rss, self.zone, self.unread)
        peaks = [_noted(row, "TRESUsageInMax", partial(peak_of, name=name), self.unread) for name in (UTIL, MEMORY)]
        self._peaks.add(step, *peaks)
        return True

    def record(self, cluster: str) -> AccountedRun:
        """Return the run. Raises GpuwasteError where a column cannot be read."""
        if self.problem:
            raise ParseError(self.problem)
        job, zone = self.job, self.zone
        if not (job.text("Cluster") or cluster):
            raise ParseError("Cluster: a job without a cluster: give it with --clusters")
        submit = job.read("Submit", lambda text: parse_time_s(text, zone))
        if submit is None:
            raise ParseError("Submit: a job without a submit time")
        printed = job.text("JobID") or job.text("JobIDRaw")
        ids = parse_printed(printed)
        if ids is None:
            raise ParseError(f"JobID: cannot read {printed[:40]!r}")
        code, signal = job.exit
        elapsed, suspended = job.elapsed_s, _seconds(job.read("Suspended", parse_cpu_s))
        started, ended = self._interval(None if elapsed is None else elapsed + suspended, zone)
        started = own_start(submit, started, elapsed)
        amounts = run_amounts(job, started=started is not None)
        return within(
            AccountedRun(
                cluster=job.text("Cluster") or cluster,
                job_id=job.job_id,
                submit=submit,
                printed_id=printed,
                array_job_id=ids.array_job_id,
                array_task_id=ids.array_task_id,
                het_job_id=ids.het_job_id,
                het_offset=ids.het_offset,
                name=job.text("JobName"),
                user=job.text("User") or job.text("UID"),  # of a deleted account the number is left
                account=job.text("Account"),
                group=job.text("Group"),
                partition=job.text("Partition"),
                qos=job.text("QOS"),
                time_limit_s=job.read("TimelimitRaw", parse_duration_s) or None,
                req_tres=amounts.req_tres,
                submit_line=job.text("SubmitLine"),
                interactive=is_interactive(job.text("SubmitLine"), self.steps),
                verdict_id=token_of(job.text("AdminComment")),
                start=started,
                restarts=job.whole("Restarts"),
                nodes="" if job.text("NodeList") in NO_NODES else job.text("NodeList"),
                n_nodes=amounts.n_nodes,
                cpus=amounts.cpus,
                gpus=amounts.gpus,
                gpu_type=amounts.gpu_type,
                alloc_tres=amounts.alloc_tres,
                mem_req_b=amounts.mem_req_b,
                end=ended,
                elapsed_s=elapsed if started is not None else None,
                suspended_s=suspended,
                state=job.state,
                exit_code=code,
                exit_signal=signal,
                total_cpu_s=self._total_cpu_s(ended),
                max_rss_b=self.max_rss_b,
                details=_details_of(job, self._sums, zone, self.unread),
                steps=tuple(self._sums.kept),
                uses=self._uses(amounts.gpus, started, ended),
            )
        )

    def _uses(self, gpus: int | None, started: int | None, ended: int | None) -> tuple[AccountedUse, ...]:
        """Return what accounting has of the use of the run's GPUs."""
        if not gpus:
            return ()
        told = _noted(self.job, "AdminComment", lambda text: jobstats_use(text, gpus, started, ended), self.unread)
        return (*(told or ()), *self._peaks.use())

    def _interval(self, length_s: int | None, zone: tzinfo) -> tuple[int | None, int | None]:
        """Return start and end. Raises ParseError naming the column."""
        if zone is UTC:
            return self.job.read("Start", parse_time_s), self.job.read("End", parse_time_s)
        try:
            return parse_interval_s(self.job.text("Start"), self.job.text("End"), length_s, zone)
        except ParseError as error:
            raise ParseError(f"Start, End: {error}") from error

    def _total_cpu_s(self, ended: int | None) -> float | None:
        """Return the larger of the job's own column and the sum over the steps, rounded to milliseconds as printed."""
        own = self.job.read("TotalCPU", parse_cpu_s)
        best = max(own or 0.0, self.step_cpu_s)
        return None if own is None or (not best and ended is None) else round(best, 3)


def _seconds(value: float | None) -> int:
    return int(value or 0)


def _details_of(job: SacctRow, sums: StepSums, zone: tzinfo, unread: _Unread) -> JobDetails:
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
    """Return what ties the job to a program; where a site keeps no comments, their option is in the submit line."""
    told = [job.text(name) for name in ("Comment", "SubmitLine") if name in job.values]
    return program_of(*told) if told else None


def _add_step(sums: StepSums, row: SacctRow, max_rss_b: int | None, zone: tzinfo, unread: _Unread) -> None:
    """Add a step's row to the sums."""
    tasks = row.whole("NTasks")
    sums.add(
        row.step,
        None if row.step == UNKEPT else _step(row, tasks, max_rss_b, zone, unread),
        _noted(row, "ConsumedEnergyRaw", _amount, unread),
        _disk_b(row, "TRESUsageInTot", "AveDiskRead", tasks, unread),
        _disk_b(row, "TRESUsageOutTot", "AveDiskWrite", tasks, unread),
    )


def _step(row: SacctRow, tasks: int | None, max_rss_b: int | None, zone: tzinfo, unread: _Unread) -> StepRecord | None:
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


def _elapsed_s(row: SacctRow, unread: _Unread) -> int | None:
    raw = "ElapsedRaw" in row.values
    return row.elapsed_s if raw else _noted(row, "Elapsed", lambda _: row.elapsed_s, unread)


def _disk_b(row: SacctRow, total: str, mean: str, tasks: int | None, unread: _Unread) -> int | None:
    """Return the bytes of all tasks: as printed, or the mean of a task times their number."""
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
        raise ParseError(f"{text[:40]!r} is larger than any number of Slurm")
    return value


def _text(row: SacctRow, name: str, read: Callable[[str], str]) -> str | None:
    return read(row.values[name]) if name in row.values else None


def _noted(row: SacctRow, name: str, read: Callable[[str], _T], unread: _Unread) -> _T | None:
    text = row.values.get(name)
    if not text:
        return None
    try:
        return read(text)
    except GpuwasteError as error:
        unread.setdefault(name, str(error)[:200])
        return None
