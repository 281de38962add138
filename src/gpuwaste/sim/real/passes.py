"""When slurmctld's main loop and backfill ran, read from its log, and the CSV that a run keeps of it.

Lines are those of slurmctld 22.05 and later with SlurmctldDebug=debug and LogTimeFormat=iso8601_ms.
"""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.core.files import write_whole

MAIN: Final = "main"
FULL: Final = "full"
BACKFILL: Final = "backfill"
COLUMNS: Final = ("instant", "kind")
_STAMP: Final = re.compile(rb"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?\] (.{0,200})")
_LINES: Final = (
    (re.compile(rb"sched: Running job scheduler for default depth"), MAIN),
    (re.compile(rb"sched: Running job scheduler for full queue"), FULL),
    (re.compile(rb"_attempt_backfill: (?:BACKFILL: )?\d+ jobs to backfill"), BACKFILL),
)
_MOST_B: Final = 1 << 28


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass of the main loop over default_queue_depth jobs (`main`) or all (`full`), or a cycle of `backfill`."""

    instant: int
    kind: str


def read_passes(data: bytes, shift_s: int = 0) -> list[Pass]:
    """Return the passes that a log tells of, in its order; `shift_s` is added to its UTC seconds."""
    found = []
    for line in data.split(b"\n"):
        if stamped := _STAMP.match(line):
            kind = next((kind for pattern, kind in _LINES if pattern.search(stamped[2])), None)
            if kind is not None and (instant := _instant(stamped[1])) is not None:
                found.append(Pass(instant + shift_s, kind))
    return found


def _instant(text: bytes) -> int | None:
    try:
        return int(datetime.fromisoformat(text.decode("ascii")).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def write_passes(path: Path, passes: Iterable[Pass]) -> None:
    """Write a run's passes, a row each. Raises StoreError."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows((each.instant, each.kind) for each in passes)
    try:
        write_whole(path, text.getvalue().encode())
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_passes_csv(path: Path) -> list[Pass]:
    """Return a run's passes. Raises StoreError, ParseError with the line."""
    try:
        with path.open("rb") as file:
            lines = file.read(_MOST_B).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not lines or lines[0] != ",".join(COLUMNS):
        raise ParseError(f"{path}: line 1: not a file of this command: expected the columns {','.join(COLUMNS)}")
    found = []
    for number, line in enumerate(lines[1:], 2):
        instant, _, kind = line.partition(",")
        if not re.fullmatch(r"-?\d{1,12}", instant) or kind not in {MAIN, FULL, BACKFILL}:
            raise ParseError(f"{path}: line {number}: not a pass: remove the file to play this run again")
        found.append(Pass(int(instant), kind))
    return found
