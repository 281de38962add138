"""The child that reads the samples of one run for the hub: it writes them to standard output, packed, and ends.

It changes nothing. Days are opened for reading alone, under the lock of the children that fold, and the open segment is
read as far as it goes. SIGALRM ends it where the disk or another child takes too long.
"""

import contextlib
import fcntl
import gzip
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb
from msgspec import json

from gpuwaste.agent.child import WAITED_FOR, hold_back
from gpuwaste.agent.fold import LOCK_NAME, days
from gpuwaste.agent.job_slots import JobSlots
from gpuwaste.agent.segment import day_of, read_ticks, segments
from gpuwaste.core import log_event
from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import open_lock
from gpuwaste.core.logs import set_up_logging
from gpuwaste.ledger.curves.curve_types import MOST_GPUS, SCHEMA, NodeSamples
from gpuwaste.ledger.sample import Confidence, Sample
from gpuwaste.net.sample_query import MOST_POINTS, RunWindow
from gpuwaste.store.database import Database

_NOT_READ: Final = log_event.warning(
    "job-samples-day-skipped: cannot read a file of raw samples for a job's curves: {error}",
    "That day is missing in the curves. Reports do not need it. Disk, permissions?",
)
DEADLINE_S: Final = 15
_MOST_VALUES: Final = 16 * MOST_POINTS  # of a quantity, over all GPUs: fewer instants where there are many
_FEWEST_SLOTS: Final = 60
_OPTIONS: Final = {"access_mode": "READ_ONLY", "memory_limit": "32MB"}


def main(folder: Path, node: str, asked: tuple[int, int, int, int, int], kept_days: int, gap_us: int) -> int:
    """Write what the node has of the run in the window `asked`; return the exit code."""
    hold_back(DEADLINE_S, WAITED_FOR)
    set_up_logging()
    try:
        with _reading(folder):
            answer = _SampleReader(folder, RunWindow(*asked)).answer(node, kept_days, gap_us)
    except OSError as error:
        _NOT_READ.log(error=f"{error.filename or folder}: {error.strerror}")
        return 1
    sys.stdout.buffer.write(gzip.compress(json.encode(answer), 5, mtime=0))
    sys.stdout.buffer.flush()
    return 0


@contextlib.contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Keep children from folding meanwhile, so that each sample is in one place."""
    lock = open_lock(folder / LOCK_NAME)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


@dataclass(slots=True)
class _Seen:
    """What the first look finds: how much there is to draw."""

    ticks: int = 0
    gpus: set[str] = field(default_factory=set)


class _SampleReader:
    """Looks twice: how much there is, then what it adds up to, so that no more is held than travels."""

    def __init__(self, folder: Path, window: RunWindow) -> None:
        first, last = day_of(window.since_us), day_of(window.until_us)
        self._window = window
        self._unreadable: set[str] = set()
        every = days(folder), segments(folder)
        self._days = [path for path in every[0] if first <= path.stem <= last]
        self._segments = [name.path for name in every[1] if first <= name.day <= last]
        self._oldest = min([path.stem for path in every[0]] + [name.day for name in every[1]], default=None)

    def answer(self, node: str, kept_days: int, gap_us: int) -> NodeSamples:
        """Return what the node has."""
        seen, window = self._look(), self._window
        points = min(window.points, _MOST_VALUES // max(1, min(len(seen.gpus), MOST_GPUS)))
        whole = seen.ticks <= points
        # Half as many slots as samples would be too many of: a slot then has two samples at least, and no false gap.
        slots = max(_FEWEST_SLOTS, points // 2)
        width_us = 1 if whole else max(1, -(-(window.until_us - window.since_us) // slots))
        summed = JobSlots(window.since_us, width_us)
        self._each_day(lambda day: self._add_day(day, summed, width_us))
        for sample in self._unfolded():
            summed.add_sample(sample)
        t_ms, gpus = summed.columns(gap_us)
        return NodeSamples(
            schema=SCHEMA,
            node=node,
            job_id=window.job_id,
            start=window.start,
            kept_since=None if self._oldest is None else _midnight(self._oldest),
            kept_days=kept_days,
            unreadable_days=len(self._unreadable),
            interval_ms=0 if whole else round(width_us / 1000),
            t_ms=t_ms,
            gpus=gpus[:MOST_GPUS],
        )

    def _look(self) -> _Seen:
        seen = _Seen()

        def look(day: Database) -> None:
            (row,) = day.rows("job_ticks", self._asked())
            seen.ticks += row["ticks"]
            seen.gpus.update(row["gpus"])

        self._each_day(look)
        instants: set[int] = set()
        for sample in self._unfolded():
            instants.add(sample.t_utc_us)
            seen.gpus.add(f"{sample.gpu_uuid} {sample.instance}")
        seen.ticks = (seen.ticks if seen.gpus else 0) + len(instants)
        return seen

    def _asked(self) -> dict[str, int]:
        asked = asdict(self._window)
        del asked["points"]
        return asked

    def _add_day(self, day: Database, summed: JobSlots, width_us: int) -> None:
        for row in day.batches("job_samples", {**self._asked(), "width_us": width_us}):
            summed.add_row(row)

    def _each_day(self, do: Callable[[Database], None]) -> None:
        """Do something with each day's file; one that cannot be read, or that was dropped meanwhile, is left out."""
        for path in self._days:
            try:
                with contextlib.closing(Database.open(path, "node", _OPTIONS)) as day:
                    do(day)
            except (StoreError, duckdb.Error) as error:
                self._skip(path, error)

    def _unfolded(self) -> Iterator[Sample]:
        """Yield the run's samples in segments, of the open one as much as there is."""
        for path in self._segments:
            try:
                for tick in read_ticks(path):
                    yield from (sample for sample in tick if _is_of(sample, self._window))
            except (ValueError, OSError) as error:
                self._skip(path, error)

    def _skip(self, path: Path, error: Exception) -> None:
        if path.exists() and path.name not in self._unreadable:
            self._unreadable.add(path.name)
            _NOT_READ.log(error=error)


def _midnight(day: str) -> int:
    return int(datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())


def _is_of(sample: Sample, window: RunWindow) -> bool:
    """Tell whether a sample is the run's; its first ones have no start yet."""
    return (
        sample.job_id == window.job_id
        and window.since_us < sample.t_utc_us <= window.until_us
        and (sample.run_key is None or sample.run_key.start == window.start)
        and sample.confidence is not Confidence.CONFLICT
    )
