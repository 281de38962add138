"""When slurmctld did what, in milliseconds, read from its log, and the CSV that a run keeps of it.

Lines are those of slurmctld 22.05 with SlurmctldDebug=debug, DebugFlags=Backfill,TraceJobs,Hetjob and
LogTimeFormat=iso8601_ms; 26.05 writes that backfill started a job only with Hetjob.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.files import write_whole

MAIN: Final = "main"
FULL: Final = "full"
BACKFILL: Final = "backfill"
SUBMITTED: Final = "submitted"
TESTED: Final = "tested"
STARTED: Final = "started"
ENDED: Final = "ended"
FREED: Final = "freed"
PASSES: Final = frozenset({MAIN, FULL, BACKFILL})
OF_JOBS: Final = frozenset({SUBMITTED, TESTED, STARTED, ENDED, FREED})
COLUMNS: Final = ("instant_ms", "kind", "row")
_STAMP: Final = re.compile(rb"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{3})\d{0,6})?\] (.{0,200})")
_JOB: Final = rb"JobId=(\d{1,12})\b"
_LINES: Final = (
    (re.compile(rb"sched: Running job scheduler for default depth"), MAIN),
    (re.compile(rb"sched: Running job scheduler for full queue"), FULL),
    (re.compile(rb"_attempt_backfill: (?:BACKFILL: )?\d+ jobs to backfill"), BACKFILL),
    (re.compile(rb"_slurm_rpc_submit_batch_job: " + _JOB), SUBMITTED),
    (re.compile(rb"_attempt_backfill: BACKFILL: test for " + _JOB), TESTED),
    (re.compile(rb"sched: Allocate " + _JOB), STARTED),
    (re.compile(rb"_start_job: (?:HETJOB: )?Started " + _JOB), STARTED),
    # What it held counts as free in searches for later starts; its nodes take no further job before their epilogs end.
    (re.compile(rb"deallocate_nodes: " + _JOB), ENDED),
    (re.compile(rb"cleanup_completing: " + _JOB), FREED),
)
_ROW: Final = re.compile(r"(-?\d{1,15}),([a-z]{1,20}),(\d{0,12})")
_MOST_B: Final = 1 << 30
_MS: Final = 1000
_CUT: Final = log_event.warning(
    "simulate-log-cut: {log}: more than {most} bytes: instants after that are not in the run's .instants.csv",
    "The run or its queue was long. run-NNN.csv is complete, the list of scheduler passes and tested jobs is not.",
)


@dataclass(frozen=True, slots=True)
class ControllerInstant:
    """One thing that slurmctld did, in milliseconds of the trace's clock.

    A pass of the main loop over default_queue_depth jobs (`main`) or all (`full`), or a cycle of `backfill`, began; or
    a job was `submitted`, `tested` by a cycle, `started`, has `ended`, or has `freed` its nodes. `row` is the job's
    place in the run's CSV, from 0.
    """

    ms: int
    kind: str
    row: int | None = None


def read_instants(data: bytes, rows: Mapping[int, int], shift_s: int = 0) -> list[ControllerInstant]:
    """Return a log's events, in its order; `rows` are jobs by Slurm's id, `shift_s` is added to its UTC seconds."""
    found = []
    for line in data.split(b"\n"):
        if stamped := _STAMP.match(line):
            instant = _instant(stamped, rows, shift_s)
            if instant is not None:
                found.append(instant)
    return found


def read_log(log: Path, rows: Mapping[int, int], shift_s: int = 0, *, most_b: int = _MOST_B) -> list[ControllerInstant]:
    """Return the events of a log's first `most_b` bytes, as `read_instants` does; logs a line where it is longer.

    Empty where there is no log.
    """
    try:
        with log.open("rb") as file:
            data = file.read(most_b)
            if file.read(1):
                _CUT.log(log=log, most=most_b)
    except FileNotFoundError:
        return []
    return read_instants(data, rows, shift_s)


def _instant(stamped: re.Match[bytes], rows: Mapping[int, int], shift_s: int) -> ControllerInstant | None:
    for pattern, kind in _LINES:
        if said := pattern.search(stamped[3]):
            row = rows.get(int(said[1])) if kind in OF_JOBS else None
            at = _seconds(stamped[1])
            if at is None or (row is None and kind in OF_JOBS):
                return None
            return ControllerInstant((at + shift_s) * _MS + int(stamped[2] or 0), kind, row)
    return None


def _seconds(text: bytes) -> int | None:
    try:
        return int(datetime.fromisoformat(text.decode("ascii")).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def write_instants(path: Path, instants: Iterable[ControllerInstant]) -> None:
    """Write a run's instants, a row each. Raises StoreError."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows((each.ms, each.kind, "" if each.row is None else each.row) for each in instants)
    try:
        write_whole(path, text.getvalue().encode())
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_instants_csv(path: Path) -> list[ControllerInstant]:
    """Return a run's instants. Raises StoreError, ParseError with the line."""
    try:
        with path.open("rb") as file:
            lines = file.read(_MOST_B).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not lines or lines[0] != ",".join(COLUMNS):
        raise ParseError(
            f"{path}: line 1: not a file of gpuwaste simulate run: expected the columns {','.join(COLUMNS)}"
        )
    return [_row(path, number, line) for number, line in enumerate(lines[1:], 2)]


def _row(path: Path, number: int, line: str) -> ControllerInstant:
    fields = _ROW.fullmatch(line)
    if fields and (fields[2] in OF_JOBS if fields[3] else fields[2] in PASSES):
        return ControllerInstant(int(fields[1]), fields[2], int(fields[3]) if fields[3] else None)
    raise ParseError(f"{path}: line {number}: not an instant of a run: remove the file to play this run again")
