"""Jobs of a run: what sbatch receives for each job of a history and when, and its outcome."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from gpuwaste.core.errors import NoDataError, ParseError, StoreError
from gpuwaste.core.files import write_whole
from gpuwaste.core.units import MINUTE_S
from gpuwaste.jobs.history.job_table import Categories, JobTable
from gpuwaste.sim.trace import Trace, trace_of
from gpuwaste.slurm.site.cluster_model import ClusterModel

_MIB: Final = 1 << 20
_BEYOND_S: Final = 3600  # how much longer a job that hit its limit would have run: slurmctld has to end it
REFUSED: Final = "REFUSED"
NEVER_STARTED: Final = "NEVER_STARTED"
PENDING: Final = "NOT_ENDED"
_WORD: Final = re.compile(r"(\w+)=(\S*)")
_LONGEST_LINE: Final = 1 << 20
_MOST_B: Final = 1 << 30
COLUMNS: Final = ("job_id", "submit", "submitted", "start", "end", "state", "nodes", "why")


@dataclass(frozen=True, slots=True)
class TraceSubmission:
    """One job of the trace: `submit` as in the trace (UTC seconds), `sleep_s` its sleep, `options` of sbatch."""

    job_id: int
    submit: int
    sleep_s: int
    limit_s: int
    options: tuple[str, ...]


def submissions(
    table: JobTable, model: ClusterModel, first: int | None = None
) -> tuple[Trace, list[TraceSubmission], dict[str, int]]:
    """Return the jobs that can be submitted, in order, and how many were left out by reason.

    What slurmctld rejects on this cluster shows when it is submitted. Raises NoDataError where no job is left.
    """
    trace, left_out = trace_of(table)
    if first is not None:
        trace = trace.first(first)
    names = {partition.name: partition.up for partition in model.partitions}
    types = {"", *(kind for node in model.nodes for kind in node.gpus)}
    kept, jobs, reasons = [], [], Counter(left_out)
    for index in range(len(trace)):
        row = int(trace.row[index])
        partition = _text(table.partition, row)
        if not names.get(partition, True):
            reasons["requests a partition that is down"] += 1
            continue
        if table.gpus[row] >= 1 and _text(table.gpu_type, row) not in types:
            reasons["requests a GPU type that the cluster does not have"] += 1
            continue
        kept.append(index)
        options = (*_options(table, row, int(trace.procs[index])), *(("-p", partition) if partition in names else ()))
        jobs.append(_submission(table, trace, index, options))
    if not jobs:
        raise NoDataError(f"no job of the trace can be submitted: {dict(reasons)}")
    return trace.take(np.array(kept, dtype=np.intp)), jobs, dict(reasons)


def _submission(table: JobTable, trace: Trace, index: int, options: tuple[str, ...]) -> TraceSubmission:
    row, run, limit = int(trace.row[index]), int(trace.run_s[index]), int(trace.limit_s[index])
    limited = not math.isnan(table.limit_s[row])
    beyond = _BEYOND_S if limited and run >= limit else 0
    minutes = ("-t", str(-(-limit // MINUTE_S))) if limited else ()
    return TraceSubmission(int(table.job_id[row]), int(trace.submit[index]), run + beyond, limit, (*minutes, *options))


def _options(table: JobTable, row: int, processors: int) -> tuple[str, ...]:
    nodes = None if math.isnan(table.nodes[row]) or table.nodes[row] < 1 else int(table.nodes[row])
    words = [f"--ntasks={max(processors, nodes or 1)}"]
    if nodes is not None:
        words.append(f"--nodes={nodes}")
    if table.mem_b[row] > 0:
        words.append(f"--mem={max(1, math.ceil(table.mem_b[row] / (nodes or 1) / _MIB))}M")
    if table.gpus[row] >= 1:
        words.append(_gpus(int(table.gpus[row]), nodes, _text(table.gpu_type, row)))
    return tuple(words)


def _gpus(count: int, nodes: int | None, kind: str) -> str:
    typed = f"{kind}:" if kind else ""
    if nodes is not None and count % nodes == 0:
        return f"--gres=gpu:{typed}{count // nodes}"
    return f"--gpus={typed}{count}"


def _text(column: Categories, row: int) -> str:
    return column.values[int(column.codes[row])]


@dataclass(frozen=True, slots=True)
class Ended:
    """One line of jobcomp/filetxt; instants are of the played clock, None where it did not happen.

    `submitted` is slurmctld's submit time; `slurm_id` is None where slurmctld rejected it or it is from a CSV.
    """

    slurm_id: int | None
    state: str
    submitted: int | None = None
    start: int | None = None
    end: int | None = None
    nodes: str = ""


@dataclass(frozen=True, slots=True)
class ReplayedOutcome:
    """One job of a run with its end on the trace's clock, UTC seconds; `submit` is the trace's.

    `why` is Slurm's word for a job that did not run.
    """

    job_id: int
    submit: int
    ended: Ended
    why: str = ""


def read_ended(data: bytes) -> tuple[list[Ended], int]:
    """Return the jobs of complete lines, and how many bytes these lines have; invalid lines are left out."""
    whole = data.rfind(b"\n") + 1
    found = []
    for line in data[:whole].split(b"\n"):
        if line and len(line) <= _LONGEST_LINE:
            fields = dict(_WORD.findall(line.decode("utf-8", "replace")))
            if fields.get("JobId", "").isdecimal():
                found.append(_ended(fields))
    return found, whole


def _ended(fields: Mapping[str, str]) -> Ended:
    nodes = fields.get("NodeList", "")
    return Ended(
        slurm_id=int(fields["JobId"][:12]),
        state=fields.get("JobState", ""),
        submitted=_instant(fields.get("SubmitTime", "")),
        start=_instant(fields.get("StartTime", "")),
        end=_instant(fields.get("EndTime", "")),
        nodes="" if nodes == "(null)" else nodes,
    )


def _instant(text: str) -> int | None:
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def write_csv(path: Path, outcomes: Iterable[ReplayedOutcome]) -> None:
    """Write a run's jobs, a row each. Raises StoreError."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for each in outcomes:
        end = each.ended
        ran = end.submitted, end.start, end.end, end.state, end.nodes
        rows.writerow((each.job_id, each.submit, *ran, each.why))
    try:
        write_whole(path, text.getvalue().encode())
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_csv(path: Path) -> list[ReplayedOutcome]:
    """Return a run's jobs. Raises StoreError, ParseError with the line."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_B)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
    rows = csv.reader(io.StringIO(data.decode("utf-8", "replace").replace("\0", " ")))
    found = []
    try:
        for number, row in enumerate(rows, 1):
            if number > 1:
                found.append(_outcome(path, number, row))
            elif tuple(row) != COLUMNS:
                raise ParseError(
                    f"{path}: line 1: not a file of gpuwaste simulate run: expected the columns {','.join(COLUMNS)}"
                )
    except csv.Error as error:
        raise ParseError(f"{path}: line {rows.line_num}: {error}: remove the file to play this run again") from error
    return found


def _outcome(path: Path, number: int, row: Sequence[str]) -> ReplayedOutcome:
    try:
        job, submit, submitted, start, end, state, nodes, why = row
        instants = [int(text) if text else None for text in (submitted, start, end)]
        return ReplayedOutcome(
            int(job), int(submit), Ended(None, state, instants[0], instants[1], instants[2], nodes), why
        )
    except ValueError:
        raise ParseError(f"{path}: line {number}: not a job: remove the file to play this run again") from None
