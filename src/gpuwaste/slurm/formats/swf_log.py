"""Standard Workload Format 2.2: logs of the Parallel Workloads Archive as JobRecords, read as a stream.

The format is 18 integers per line, -1 for "not known", and `;` before header lines
(https://www.cs.huji.ac.il/labs/parallel/workload/swf.html). Users, groups, programs, queues and partitions are
numbers, kept as texts; memory is KB for each processor.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import decoded
from gpuwaste.slurm.accounting.job_record import JobRecord, within
from gpuwaste.slurm.accounting.sacct_rows import BadRow

COLUMNS: Final = 18
ASSUMED: Final = "submit + run"
_KEPT_B: Final = 2000
_MAX_NUMBER: Final = 10**12
_HEADER = re.compile(r";\s*([A-Za-z]+)\s*:\s*(.*)")
_STATES: Final = {1: "COMPLETED", 0: "FAILED", 5: "CANCELLED"}
_PARTIAL: Final = frozenset({2, 3, 4})
_FEW_ASSUMED: Final = 0.01  # a log with a smaller share of assumed starts has waits


@dataclass(slots=True)
class SwfFacts:
    """What a log contains, counted while it is read: complete after its last row.

    `header` holds the first value of each header field; `origin` is UnixStartTime, UTC seconds, None where the log has
    none and its times are seconds since its own beginning. A row is counted for each request, user, wait and status
    that it has. `partial` counts executions between checkpoints (status 2, 3, 4), which are not jobs: their job has a
    line of its own. `other_status` counts rows with a status that is not in the format.
    """

    header: dict[str, str] = field(default_factory=dict)
    origin: int | None = None
    rows: int = 0
    bad: int = 0
    users: int = 0
    requested_procs: int = 0
    requested_time: int = 0
    requested_memory: int = 0
    waits: int = 0
    assumed_starts: int = 0
    statuses: int = 0
    partial: int = 0
    other_status: int = 0
    unsorted: int = 0

    @property
    def processors(self) -> int | None:
        """Processors of the machine by MaxProcs, else by MaxNodes, where a log names nothing finer."""
        for name in ("MaxProcs", "MaxNodes"):
            said = self.header.get(name, "").partition(" ")[0]
            if said.isdecimal() and len(said) <= len(str(_MAX_NUMBER)) and 0 < int(said) <= _MAX_NUMBER:
                return int(said)
        return None

    @property
    def waits_known(self) -> bool:
        """Whether starts are real; else `start` is the submission, and an end is submit + run."""
        return self.waits > 0 and self.assumed_starts <= _FEW_ASSUMED * self.rows

    @property
    def end_rule(self) -> str:
        """The rule by which ends were known: "accounting" or "submit + run"."""
        return "accounting" if self.waits_known else ASSUMED


def read_swf(
    lines: Iterable[bytes], cluster: str, origin: int | None = None
) -> tuple[SwfFacts, Iterator[JobRecord | BadRow]]:
    """Return the log's facts, which fill up while the rows are read, and the rows.

    `origin` is UnixStartTime where the lines are a later part of a log, without its header.
    A damaged place in the file (ParseError of `lines`) is the last bad row; nothing in the lines raises.
    """
    facts = SwfFacts(origin=origin)
    return facts, _rows(lines, cluster, facts)


def _rows(lines: Iterable[bytes], cluster: str, facts: SwfFacts) -> Iterator[JobRecord | BadRow]:
    last, number = -1, 0
    source = iter(lines)
    while True:
        number += 1
        try:
            line = next(source, None)
        except ParseError as error:
            facts.bad += 1
            yield BadRow(number, str(error), "")
            return
        if line is None:
            return
        text = line.strip()
        if text.startswith(b";"):
            _header(text, facts)
            continue
        if not text:
            continue
        try:
            job = _job(_numbers(text), cluster, facts)
        except ParseError as error:
            facts.bad += 1
            yield BadRow(number, str(error), decoded(line[:_KEPT_B]))
            continue
        if job is not None:
            facts.unsorted += job.submit < last
            last = max(last, job.submit)
            yield job


def _header(text: bytes, facts: SwfFacts) -> None:
    match = _HEADER.match(decoded(text[:_KEPT_B]))
    if match is None:
        return
    facts.header.setdefault(match[1], match[2].strip())
    if match[1] == "UnixStartTime" and facts.origin is None and match[2].strip().isdecimal():
        facts.origin = min(int(match[2].strip()[:15]), _MAX_NUMBER) or None


def _numbers(text: bytes) -> list[int]:
    words = text.split()
    if len(words) != COLUMNS:
        raise ParseError(f"{len(words)} columns, but SWF has {COLUMNS}")
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        numbers = [_whole(word) for word in words]
    if max(numbers) > _MAX_NUMBER:
        raise ParseError("a number that is too large")
    return numbers


def _whole(word: bytes) -> int:
    """Read an integer that some logs print with a fraction, such as the mean CPU time."""
    try:
        return int(float(word))
    except (ValueError, OverflowError):
        raise ParseError(f"{word[:20].decode('ascii', 'backslashreplace')!r} is not a number") from None


def _job(row: list[int], cluster: str, facts: SwfFacts) -> JobRecord | None:
    """Return the run of a row; None for a part of a run."""
    job_id, submit, wait, run, procs, cpu_s, _, req_procs, limit, req_kb, status, *who, _, _ = row
    user, group, program, queue, partition = who
    if status in _PARTIAL:
        facts.partial += 1
        return None
    if job_id < 0:
        raise ParseError("no job number")
    if submit < 0:
        raise ParseError("no submit time")
    submit += facts.origin or 0
    start, end = _interval(submit, wait, run, cancelled=_STATES.get(status) == "CANCELLED")
    facts.rows += 1
    facts.users += user >= 0
    facts.requested_procs += req_procs > 0
    facts.requested_time += limit > 0
    facts.requested_memory += req_kb > 0
    facts.waits += wait >= 0
    facts.assumed_starts += start is not None and wait < 0
    facts.statuses += status in _STATES
    facts.other_status += status not in _STATES and status != -1
    account = _text(group)
    return within(
        JobRecord(
            cluster=cluster,
            job_id=job_id,
            submit=submit,
            printed_id=str(job_id),
            name=_text(program),
            user=_text(user),
            account=account,
            group=account,
            partition=_text(partition),
            qos=_text(queue),
            time_limit_s=limit if limit > 0 else None,
            req_tres=_request(req_procs, req_kb),
            start=start,
            cpus=procs if procs > 0 and start is not None else None,
            end=end,
            elapsed_s=run if start is not None and run >= 0 else None,
            state=_STATES.get(status, ""),
            total_cpu_s=float(cpu_s * procs) if cpu_s >= 0 and procs > 0 else None,
        )
    )


def _interval(submit: int, wait: int, run: int, *, cancelled: bool) -> tuple[int | None, int | None]:
    """Return start and end; without a wait the start is assumed to be the submission.

    A cancelled job that ran for no time never started: its wait is the time until it was cancelled.
    """
    begun = submit + max(wait, 0)
    if cancelled and run <= 0:
        return None, begun
    if run < 0:
        return (begun if wait >= 0 else None), None
    return begun, begun + run


def _request(procs: int, kb_each: int) -> str:
    """Return ReqTRES; the memory of an unknown number of processors is not known."""
    if procs <= 0:
        return ""
    return f"cpu={procs},mem={procs * kb_each}K" if kb_each > 0 else f"cpu={procs}"


def _text(number: int) -> str:
    return str(number) if number >= 0 else ""
