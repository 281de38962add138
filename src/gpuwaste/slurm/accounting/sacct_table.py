"""Rows of sacct as lines of a table for DuckDB: the jobs of a page without their steps.

Each text, or group of texts, is read once, by the functions that sacct_run.py uses, however many jobs have it. A row
that is not one line, or that has a field which cannot be read, is left over for parse_sacct. Of a step only its name
and its peaks count. Texts that name or describe one job (its name, submit line and comments) are not in the table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import partial
from operator import itemgetter
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.text import decoded
from gpuwaste.core.units import parse_duration_s
from gpuwaste.slurm.accounting.job_record import JobRecord, flag_text, own_text, short, within
from gpuwaste.slurm.accounting.line_format import NULL, SEPARATOR, line_text
from gpuwaste.slurm.accounting.page_jobs import page_jobs
from gpuwaste.slurm.accounting.run_amounts import AMOUNT_COLUMNS, run_amounts
from gpuwaste.slurm.accounting.sacct_row import FREE, SacctRow, whole_number
from gpuwaste.slurm.accounting.sacct_rows import ADMIN_COMMENT
from gpuwaste.slurm.accounting.use_lines import use_lines
from gpuwaste.slurm.formats.hostlist import NO_NODES
from gpuwaste.slurm.formats.printed_run import is_interactive, parse_printed
from gpuwaste.slurm.formats.slurm_times import own_start, parse_cpu_s, parse_interval_s, parse_time_s

COLUMNS: Final = (
    *("job_id", "printed_id", "array_job_id", "array_task_id", "het_job_id", "het_offset"),
    *("submit", "run_start", "start", "end", "elapsed_s", "suspended_s", "eligible", "priority"),
    *("interactive", "nodes", "cluster", "user", "account", "partition", "qos"),
    *("time_limit_s", "state", "exit_code", "exit_signal", "restarts", "flags", "reason", "constraints", "reservation"),
    *("req_tres", "alloc_tres", "n_nodes", "cpus", "gpus", "gpu_type", "mem_req_b"),
)
"""The columns of a line, by their names in table jobs."""
_WHO: Final = ("Cluster", "User", "UID", "Account", "Partition", "QOS")
_HOW: Final = ("TimelimitRaw", "State", "ExitCode", "Restarts", "Flags", "Reason", "Constraints", "Reservation")
_TIMES: Final = ("Submit", "Start", "End", "ElapsedRaw", "Elapsed", "Suspended", "Eligible", "Priority")
_NO_PARTS: Final = f"{SEPARATOR}{NULL}" * 4
_EPOCH_DIGITS: Final = 10


@dataclass(slots=True)
class PageTable:
    """The lines of a page, and the lines of its text that are left over, by the number of the first, counted from 1.

    `uses` are lines of use_lines.py. Left lines that follow each other stay together, as they may be one row.
    """

    lines: list[str] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    left_over: dict[int, list[str]] = field(default_factory=dict)
    _first: int = 0

    def leave(self, number: int, line: str) -> None:
        """Leave a line over."""
        together = self.left_over.get(self._first, [])
        if not together or self._first + len(together) != number:
            together, self._first = [], number
            self.left_over[number] = together
        together.append(line)


def page_table(
    data: bytes, columns: Sequence[str], delimiter: bytes, cluster: str, *, zone: tzinfo = UTC, header: str = ""
) -> PageTable:
    """Return the table of a page with these columns; a line that is `header` is none of its rows."""
    found = PageTable()
    if columns[-1] in FREE:  # a row goes on for as long as no other begins
        found.left_over[1] = decoded(data).removesuffix("\n").split("\n")
        return found
    reader, separator = _Reader(columns, cluster, zone), delimiter.decode()
    comments = columns.index(ADMIN_COMMENT) if ADMIN_COMMENT in columns else None
    for job in page_jobs(data, columns, separator, (header, SEPARATOR, NULL), found.leave):
        try:
            line = reader.line(job.row, job.steps)
            comment = "" if comments is None else job.row[comments]
            if job.peaks is not None or "JS" in comment:
                found.uses += use_lines(dict(zip(COLUMNS, line.split(SEPARATOR), strict=True)), comment, job.peaks)
            found.lines.append(line)
        except GpuwasteError:
            for number, text in enumerate(job.lines, job.number):
                found.leave(number, text)
    return found


class _Cached(dict[Any, Any]):
    """What `read` returns for a key, kept. Raises what `read` raises, each time."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, key: Any) -> Any:
        value = self[key] = self._read(key)
        return value


class _Reader:
    """Reads the rows of a page with these columns."""

    def __init__(self, columns: Sequence[str], cluster: str, zone: tzinfo) -> None:
        self._cluster = cluster
        self._zone = zone
        self._columns = columns
        self._raw = "ElapsedRaw" in columns
        self._who, self._how = self._group(_WHO, self._who_text), self._group(_HOW, _how_text)
        self._amounts = {
            started: self._group(AMOUNT_COLUMNS, partial(_amounts_text, started=started)) for started in (False, True)
        }
        self._times = self._getter(_TIMES)
        self._texts = self._getter(("JobIDRaw", "JobID", "SubmitLine", "NodeList"))
        self._instants = _Cached(lambda text: parse_time_s(text, zone))
        self._elapsed = _Cached(lambda text: _row({"Elapsed": text}).elapsed_s)
        self._suspended = _Cached(lambda text: int(parse_cpu_s(text) or 0))

    def line(self, row: list[str], steps: set[str]) -> str:
        """Return the line of a job's row, whose steps have these names. Raises GpuwasteError."""
        job_id, printed, submit_line, nodes = self._texts(row)
        times, started = self._times_text(row)
        who, how, amounts = self._who, self._how, self._amounts[started]
        return SEPARATOR.join((
            _ids_text(job_id, printed),
            times,
            "true" if is_interactive(submit_line, steps) else "false",
            "" if nodes in NO_NODES else nodes,
            who.found[who.key(row)],
            how.found[how.key(row)],
            amounts.found[amounts.key(row)],
        ))  # fmt: skip

    def _times_text(self, row: list[str]) -> tuple[str, bool]:
        """Return the times as columns, and whether the job started."""
        submitted, start, end, raw, printed, suspended, eligible, priority = self._times(row)
        submit = self._instant(submitted)
        if submit is None:
            raise ParseError("Submit: a job without a submit time")
        elapsed, off = whole_number(raw) if self._raw else self._elapsed[printed], self._suspended[suspended]
        if self._zone is UTC:
            begun, ended = self._instant(start), self._instant(end)
        else:
            begun, ended = parse_interval_s(start, end, None if elapsed is None else elapsed + off, self._zone)
        begun = own_start(submit, begun, elapsed)
        values = (
            *(submit, submit if begun is None else begun, begun, ended, None if begun is None else elapsed, off),
            *(self._instant(eligible) if eligible else None, whole_number(priority)),
        )
        return SEPARATOR.join([NULL if value is None else str(value) for value in values]), begun is not None

    def _instant(self, text: str) -> int | None:
        """Return UTC seconds; nearly all texts are epoch seconds of our time."""
        return int(text) if len(text) == _EPOCH_DIGITS and text.isdigit() and text.isascii() else self._instants[text]

    def _who_text(self, row: SacctRow) -> str:
        cluster = row.text("Cluster") or self._cluster
        if not cluster:
            raise ParseError("Cluster: a job without a cluster: give it with --clusters")
        user = row.text("User") or row.text("UID")
        return SEPARATOR.join((cluster, user, row.text("Account"), row.text("Partition"), row.text("QOS")))

    def _getter(self, names: Sequence[str]) -> Callable[[list[str]], tuple[str, ...]]:
        """Return a function that gives these columns of a row, "" for one that the page does not have."""
        places = {name: place for place, name in enumerate(self._columns)}
        return itemgetter(*(places.get(name, -1) for name in names))

    def _group(self, names: Sequence[str], text: Callable[[SacctRow], str]) -> "_Group":
        present = [name for name in names if name in self._columns]

        def read(key: tuple[str, ...]) -> str:
            return text(_row({name: value for name, value in zip(names, key, strict=True) if name in present}))

        return _Group(self._getter(names), _Cached(read))


@dataclass(frozen=True, slots=True)
class _Group:
    """Columns that are read together: their texts in a row, and the columns of the table by these texts."""

    key: Callable[[list[str]], tuple[str, ...]]
    found: Mapping[tuple[str, ...], str]


def _row(values: dict[str, str]) -> SacctRow:
    """Return a row of which only these columns are read."""
    return SacctRow(line=0, values=values, raw="", job_id=0, step="", is_step=False)


def _ids_text(job_id: str, printed: str) -> str:
    if not printed or printed == job_id:
        return f"{int(job_id)}{SEPARATOR}{job_id}{_NO_PARTS}"
    parts = parse_printed(printed)
    if parts is None:
        raise ParseError(f"JobID: cannot read {printed[:40]!r}")
    ids = parts.array_job_id, parts.array_task_id, parts.het_job_id, parts.het_offset
    return SEPARATOR.join((str(int(job_id)), printed, *line_text(ids)))


def _how_text(row: SacctRow) -> str:
    code, signal = row.exit
    limit, restarts = row.read("TimelimitRaw", parse_duration_s) or None, row.whole("Restarts")
    within(JobRecord("", 0, 0, time_limit_s=limit, restarts=restarts, exit_code=code, exit_signal=signal))
    told = row.values
    details = (
        flag_text(told["Flags"].split(",")) if "Flags" in told else None,
        own_text(told["Reason"]) if "Reason" in told else None,
        *(short(told[name]) if name in told else None for name in ("Constraints", "Reservation")),
    )
    return SEPARATOR.join(line_text((limit, row.state, code, signal, restarts, *details)))


def _amounts_text(row: SacctRow, *, started: bool) -> str:
    found = run_amounts(row, started=started)
    numbers = found.n_nodes, found.cpus, found.gpus
    within(JobRecord("", 0, 0, n_nodes=found.n_nodes, cpus=found.cpus, gpus=found.gpus, mem_req_b=found.mem_req_b))
    return SEPARATOR.join(line_text((found.req_tres, found.alloc_tres, *numbers, found.gpu_type, found.mem_req_b)))
