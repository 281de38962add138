"""One run's rows of sacct, the job's and its steps', made into a JobRecord."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import Final, TypeVar

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.job import JobRecord
from gpuwaste.core.text import decoded
from gpuwaste.core.units import parse_duration_s, parse_size_b
from gpuwaste.core.verdict import token_of
from gpuwaste.slurm.bounds import within
from gpuwaste.slurm.interactive import is_interactive
from gpuwaste.slurm.no_value import NO_NUMBERS
from gpuwaste.slurm.printed_id import parse_printed
from gpuwaste.slurm.req_mem import total_b
from gpuwaste.slurm.sacct_request import request_tres
from gpuwaste.slurm.sacct_shape import settle
from gpuwaste.slurm.times import own_start, parse_cpu_s, parse_interval_s, parse_time_s
from gpuwaste.slurm.tres import held_gpus, memory_b, parse_tres

_ID = re.compile(rb"\d{1,10}(?:\.[\w+]{1,32})?")
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_EXIT = re.compile(r"(\d{1,10}):(\d{1,10})", re.ASCII)
_NOWHERE: Final = frozenset({"", "None assigned", "(null)", "None"})
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


def is_row_start(line: bytes, delimiter: bytes, id_column: int) -> bool:
    """Tell whether a line has a raw job or step id, and a delimiter after it, in the column of JobIDRaw."""
    parts = line.split(delimiter, id_column + 1)
    return len(parts) == id_column + 2 and _ID.fullmatch(parts[id_column]) is not None


def row_of(raw: bytes, fields: Sequence[str], delimiter: bytes, line: int) -> SacctRow | None:
    """Split a whole row; bytes that are no UTF-8 become escapes, so that the text can be stored anywhere.

    None where it has more separators than its columns of free text can explain.
    """
    text = decoded(raw.removesuffix(b"\n").removesuffix(b"\r")).replace("\0", "")
    parts: list[str] | None = text.split(delimiter.decode("utf-8"))
    if parts is not None and len(parts) != len(fields):
        parts = settle(parts, fields, delimiter.decode("utf-8"))
    if parts is None:
        return None
    values = dict(zip(fields, parts, strict=True))
    job_id, dot, step = values["JobIDRaw"].partition(".")
    return SacctRow(line, values, text, int(job_id), step, bool(dot))


@dataclass(slots=True)
class RunRows:
    """A job's row with what its steps add up to: constant memory, however many steps there are."""

    job: SacctRow
    max_rss_b: int | None = None
    step_cpu_s: float = 0.0
    steps: set[str] = field(default_factory=set)  # their names, "0" for every numbered one
    problem: str = ""

    def add_step(self, row: SacctRow) -> bool:
        """Fold a step in; false where it is another job's."""
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
        return True

    def record(self, cluster: str, zone: tzinfo = UTC) -> JobRecord:
        """Return the run; dates without an offset are in `zone`. Raises GpuwasteError where a column cannot be read."""
        if self.problem:
            raise ParseError(self.problem)
        job = self.job
        if not (job.text("Cluster") or cluster):
            raise ParseError("Cluster: a job without a cluster, and --clusters names none")
        submit = job.read("Submit", lambda text: parse_time_s(text, zone))
        if submit is None:
            raise ParseError("Submit: a job without a submit time")
        tres = job.read("AllocTRES", parse_tres)
        n_nodes, cpus = job.whole("NNodes"), job.whole("AllocCPUS")
        printed = job.text("JobID") or job.text("JobIDRaw")
        ids = parse_printed(printed)
        if ids is None:
            raise ParseError(f"JobID: cannot read {printed[:40]!r}")
        code, signal = _exit(job.text("ExitCode"))
        elapsed, suspended = _elapsed(job), _seconds(job.read("Suspended", parse_cpu_s))
        started, ended = self._interval(None if elapsed is None else elapsed + suspended, zone)
        started = own_start(submit, started, elapsed)
        asked = job.text("ReqTRES") or request_tres(job.values)
        gpus_asked = asked if job.text("ReqTRES") or "ReqGRES" in job.values else ""  # else it does not tell of GPUs
        gpus = job.read("AllocTRES", lambda _: held_gpus(tres, gpus_asked, started=started is not None))
        return within(
            JobRecord(
                cluster=job.text("Cluster") or cluster,
                job_id=job.job_id,
                submit=submit,
                printed_id=printed,
                array_job_id=ids.array_job_id,
                array_task_id=ids.array_task_id,
                het_job_id=ids.het_job_id,
                het_offset=ids.het_offset,
                name=job.text("JobName"),
                user=job.text("User") or job.text("UID"),  # an account that was deleted leaves its number
                account=job.text("Account"),
                group=job.text("Group"),
                partition=job.text("Partition"),
                qos=job.text("QOS"),
                time_limit_s=job.read("TimelimitRaw", parse_duration_s) or None,
                req_tres=asked,
                submit_line=job.text("SubmitLine"),
                interactive=is_interactive(job.text("SubmitLine"), self.steps),
                verdict_id=token_of(job.text("AdminComment")),
                start=started,
                restarts=job.whole("Restarts"),
                nodes="" if job.text("NodeList") in _NOWHERE else job.text("NodeList"),
                n_nodes=n_nodes,
                cpus=cpus,
                gpus=None if gpus is None else gpus.total,
                gpu_type="" if gpus is None else gpus.type,
                alloc_tres=job.text("AllocTRES"),
                mem_req_b=job.read("ReqMem", lambda text: total_b(text, n_nodes, cpus)) or memory_b(tres),
                end=ended,
                elapsed_s=elapsed if started is not None else None,
                suspended_s=suspended,
                state=(job.text("State").split() or [""])[0].rstrip("+"),
                exit_code=code,
                exit_signal=signal,
                total_cpu_s=self._total_cpu_s(ended),
                max_rss_b=self.max_rss_b,
            )
        )

    def _interval(self, length_s: int | None, zone: tzinfo) -> tuple[int | None, int | None]:
        """Return start and end. Raises ParseError naming the column."""
        if zone is UTC:
            return self.job.read("Start", parse_time_s), self.job.read("End", parse_time_s)
        try:
            return parse_interval_s(self.job.text("Start"), self.job.text("End"), length_s, zone)
        except ParseError as error:
            raise ParseError(f"Start, End: {error}") from error

    def _total_cpu_s(self, ended: int | None) -> float | None:
        """Take the job's own column where it counts, else the sum over the steps, in whole milliseconds as printed."""
        own = self.job.read("TotalCPU", parse_cpu_s)
        best = max(own or 0.0, self.step_cpu_s)
        return None if own is None or (not best and ended is None) else round(best, 3)


def _exit(text: str) -> tuple[int | None, int | None]:
    match = _EXIT.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else (None, None)


def _elapsed(job: SacctRow) -> int | None:
    """Return the run's seconds without its suspensions, from whichever of the two columns is there."""
    if "ElapsedRaw" in job.values:
        return job.whole("ElapsedRaw")
    seconds = job.read("Elapsed", parse_cpu_s)
    return None if seconds is None else int(seconds)


def _seconds(value: float | None) -> int:
    return int(value or 0)
