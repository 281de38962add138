"""What became of each job: jobcomp/filetxt's lines, and the CSV that a run keeps."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.files import write_whole

REFUSED: Final = "REFUSED"
NEVER_STARTED: Final = "NEVER_STARTED"
PENDING: Final = "NOT_ENDED"
_WORD: Final = re.compile(r"(\w+)=(\S*)")
_LONGEST_LINE: Final = 1 << 20
_MOST_B: Final = 1 << 30
COLUMNS: Final = ("job_id", "submit", "submitted", "start", "end", "state", "nodes", "why")


@dataclass(frozen=True, slots=True)
class Ended:
    """One line of jobcomp/filetxt; instants are of the played clock, None where it did not happen.

    `submitted` is when slurmctld has it from; `slurm_id` is None where slurmctld did not take it, or nobody asks.
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
    """Return the jobs of whole lines, and how many bytes these lines have; a line that is none is left out."""
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
                    f"{path}: line 1: not a file of this command: expected the columns {','.join(COLUMNS)}"
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
