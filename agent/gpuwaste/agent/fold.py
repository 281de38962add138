"""The child process that folds finished segments into day files: only children load DuckDB, for a short time.

One at a time works on a folder (fold.lock). A segment's ticks and the rows that they refer to go into the day's file in
one transaction; a segment that is already there is only removed. So a child can be killed at any instant: the next one
continues. It ends when one step takes too long.
"""

import contextlib
import fcntl
import os
import re
import signal
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

import duckdb

from gpuwaste.agent.child import LAST, hold_back
from gpuwaste.agent.day_file import DayFile
from gpuwaste.agent.segment import Name, day_of, read_ticks, segments, to_line
from gpuwaste.core import log_event
from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import open_lock
from gpuwaste.core.logs import set_up_logging
from gpuwaste.ledger.gpu_sample import Sample

_NO_ACCESS: Final = log_event.error(
    "raw-samples-no-access: cannot fold raw samples: {path}: {error}",
    "Check the permissions of `[agent] state_dir` and its disk. Samples stay in segments.",
)
_NOT_FOLDED: Final = log_event.error(
    "raw-samples-not-folded: cannot fold raw samples, retry with the next segment: {error}",
    "Samples stay in `raw/*.samples`; nothing is lost. Check disk, permissions, and who has the day file open.",
)
_DAY_SKIPPED: Final = log_event.warning(
    "raw-samples-day-skipped: cannot read a day of raw samples, day skipped: {error}",
    "Runs that were open when the agent ended are known up to that day. Hours that were sent are safe.",
)
_NOT_COMPACTED: Final = log_event.warning(
    "raw-samples-not-compacted: cannot compact {file}, retry later: {error}",
    "The file stays larger. Check the disk and the permissions of `[agent] state_dir`.",
)
_SET_ASIDE: Final = log_event.error(
    "raw-samples-set-aside: damaged file of raw samples renamed to {file}: {error}",
    "A new file is started. Delete the damaged one when you do not need it.",
)
LOCK_NAME: Final = "fold.lock"
_STEP_S: Final = 300  # to wait for another child, to fold a segment, to rewrite a day
_DAY: Final = re.compile(r"(\d{4}-\d{2}-\d{2})\.duckdb")
# DuckDB's messages where the machine is at fault, not the file.
_NOT_THE_FILE: Final = re.compile(
    r"set lock|permission denied|no space|read-only file system|too many open|quota|file too large", re.IGNORECASE
)


def main(folder: Path, below: int, *, today: str = "", pack_today: bool = False, since_us: int | None = None) -> int:
    """Fold the segments numbered below `below`; return the exit code, 1 where something was left for the next child.

    With `today` the last day before it is rewritten, and with `pack_today` today's file as well. With `since_us` the
    samples after it go to standard output, a line per tick, oldest first, including those that could not be folded.
    """
    hold_back(_STEP_S, LAST)
    set_up_logging()
    try:
        with _alone(folder):
            left = _fold(folder, [name for name in segments(folder) if name.number < below])
            if since_us is not None:
                _print_since(folder, since_us, left)
                return 0
            if today:
                for path in [path for path in days(folder) if path.stem < today][-1:]:
                    _compact(path, over=True)
            if pack_today and (path := folder / f"{today}.duckdb").exists():
                _compact(path, over=False)
            return 1 if left else 0
    except OSError as error:
        _NO_ACCESS.log(path=error.filename or folder, error=error.strerror)
        return 1


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait for a child of an agent that was killed, and remove the leftovers of a killed child."""
    lock = open_lock(folder / LOCK_NAME)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in folder.glob("*.tmp*"):
            leftover.unlink()
        yield
    finally:
        os.close(lock)


def _fold(folder: Path, names: list[Name]) -> list[Name]:
    """Fold the segments in order and return those that must wait because of a problem of the machine."""
    for place, name in enumerate(names):
        signal.alarm(_STEP_S)
        try:
            with contextlib.closing(_open_or_set_aside(folder / f"{name.day}.duckdb")) as day:
                _fold_one(day, name)
        except (StoreError, OSError) as error:
            _NOT_FOLDED.log(error=error)
            return names[place:]
    return []


def _fold_one(day: DayFile, name: Name) -> None:
    """Fold a segment and remove it; a file that is not a valid segment is renamed. Raises StoreError, OSError."""
    try:
        day.fold(read_ticks(name.path))
    except FileNotFoundError:  # the agent dropped it: the disk was full
        return
    except (StoreError, ValueError) as error:
        if isinstance(error, StoreError) and _NOT_THE_FILE.search(str(error)):
            raise
        _set_aside(name.path, error)
        return
    name.path.unlink(missing_ok=True)


def _print_since(folder: Path, since_us: int, left: list[Name]) -> None:
    """Write the samples after an instant to standard output; an unreadable day is left out."""
    out, last_us = sys.stdout.buffer, since_us
    for path in (path for path in days(folder) if path.stem >= day_of(since_us)):
        signal.alarm(_STEP_S)
        try:
            with contextlib.closing(_open_or_set_aside(path)) as day:
                for tick in _ticks(day.since(since_us)):
                    out.write(to_line(tick))
                    last_us = max(last_us, tick[0].t_utc_us)
        except (StoreError, duckdb.Error) as error:
            _DAY_SKIPPED.log(error=error)
    for name in left:
        with contextlib.suppress(FileNotFoundError, ValueError):
            out.writelines(to_line(tick) for tick in read_ticks(name.path) if tick and tick[0].t_utc_us > last_us)
    out.flush()


def _ticks(samples: Iterator[Sample]) -> Iterator[list[Sample]]:
    return (list(tick) for _, tick in groupby(samples, key=lambda sample: sample.t_utc_us))


def _compact(path: Path, *, over: bool) -> None:
    """Rewrite a day, but only once after it has ended; a failure leaves it unchanged."""
    signal.alarm(_STEP_S)
    packed = path.with_name(f"{path.name}.tmp")
    try:
        with contextlib.closing(_open_or_set_aside(path)) as day:
            if day.compacted:
                return
            day.compact_into(packed, over=over)
        packed.replace(path)
    except (StoreError, OSError) as error:
        _NOT_COMPACTED.log(file=path.name, error=error)


def _open_or_set_aside(path: Path) -> DayFile:
    try:
        return DayFile(path)
    except StoreError as error:
        if not path.exists() or _NOT_THE_FILE.search(str(error)):
            raise
        _set_aside(path, error)
    return DayFile(path)


def _set_aside(path: Path, error: Exception) -> None:
    """Rename an unusable file, with its WAL. Raises OSError."""
    aside = next(name for n in range(1000) if not (name := path.with_name(f"{path.name}.corrupt{n or ''}")).exists())
    with contextlib.suppress(OSError):
        path.with_name(f"{path.name}.wal").replace(aside.with_name(f"{aside.name}.wal"))
    path.replace(aside)
    _SET_ASIDE.log(file=aside.name, error=error)


def days(folder: Path) -> list[Path]:
    """Return the files of the days, the oldest first."""
    return sorted(path for path in folder.iterdir() if _DAY.fullmatch(path.name))
