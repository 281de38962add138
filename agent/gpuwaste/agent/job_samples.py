"""The child process that reads the samples of one run for the hub, writes them to standard output, packed, and ends.

It changes nothing. Days are opened read-only, under the lock of the children that fold, and the open segment is read up
to its current end. SIGALRM ends it where the disk or another child takes too long.
"""

import contextlib
import fcntl
import gzip
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import duckdb
from msgspec import json

from gpuwaste.agent.child import WAITED_FOR, hold_back
from gpuwaste.agent.fold import LOCK_NAME, days
from gpuwaste.agent.segment import day_of, read_ticks, segments
from gpuwaste.core import log_event
from gpuwaste.core.errors import StoreError
from gpuwaste.core.files import open_lock
from gpuwaste.core.logs import set_up_logging
from gpuwaste.ledger.curves.curve_types import MOST_GPUS, QUANTITIES, SCHEMA, CurveSeries, GpuCurves, NodeSamples
from gpuwaste.ledger.gpu_sample import Confidence, Sample
from gpuwaste.net.sample_query import MOST_POINTS, RunWindow
from gpuwaste.store.database import Database

_NOT_READ: Final = log_event.warning(
    "job-samples-day-skipped: cannot read a file of raw samples for a job's curves: {error}",
    "That day is missing in the curves. Reports do not need it. Check the disk and the permissions.",
)
DEADLINE_S: Final = 15
_MOST_VALUES: Final = 16 * MOST_POINTS  # per quantity, over all GPUs: fewer instants for many GPUs
_FEWEST_SLOTS: Final = 60
_OPTIONS: Final = {"access_mode": "READ_ONLY", "memory_limit": "32MB"}
_DIGITS: Final = {"util_pct": 2, "sm_pct": 2, "mem_used_b": 0, "power_w": 1}
Cell = tuple[int, float, float, float]
"""The number of values, their sum, the least and the greatest."""


def main(folder: Path, node: str, asked: tuple[int, int, int, int, int], kept_days: int, gap_us: int) -> int:
    """Write the node's samples of the run in the window `asked`; return the exit code."""
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
    """Keep children from folding meanwhile, so that each sample is in exactly one place."""
    lock = open_lock(folder / LOCK_NAME)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
    finally:
        os.close(lock)


@dataclass(slots=True)
class _Seen:
    """The result of the first pass: how many samples there are."""

    ticks: int = 0
    gpus: set[str] = field(default_factory=set)


class JobSlots:
    """Adds up by slots of `width_us` after `since_us`; with 1 microsecond each sample has a separate slot."""

    def __init__(self, since_us: int, width_us: int) -> None:
        self._since_us = since_us
        self._width_us = width_us
        self._cells: dict[tuple[str, str], dict[int, dict[str, Cell]]] = {}
        self._facts: dict[tuple[str, str], tuple[int | None, int | None]] = {}

    def add_sample(self, sample: Sample) -> None:
        """Add a sample that was not folded yet."""
        values = {
            "util_pct": sample.util_pct,
            "sm_pct": None if sample.sm_ratio is None else sample.sm_ratio * 100,
            "mem_used_b": sample.mem_used_b,
            "power_w": None if sample.power_mw is None else sample.power_mw / 1000,
        }
        cells = {name: (1, value, value, value) for name, value in values.items() if value is not None}
        slot = (sample.t_utc_us - self._since_us - 1) // self._width_us
        self._add((sample.gpu_uuid, sample.instance), slot, cells, (sample.mem_total_b, sample.power_limit_mw))

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Add a row of query job_samples."""
        cells = {
            name: (row[f"{name}_n"], row[f"{name}_sum"], row[f"{name}_min"], row[f"{name}_max"])
            for name in QUANTITIES
            if row[f"{name}_n"]
        }
        self._add((row["uuid"], row["instance"]), row["slot"], cells, (row["mem_total_b"], row["power_limit_mw"]))

    def columns(self, gap_us: int) -> tuple[list[int], list[GpuCurves]]:
        """Return the instants, UTC milliseconds, and the GPUs' series; unknown values are None.

        Samples that are further apart than `gap_us` get a None between them; wider slots are complete from the first to
        the last.
        """
        used = sorted({slot for slots in self._cells.values() for slot in slots})
        instants = self._instants(used, gap_us)
        t_ms = [round((self._since_us + 1 + (slot + 0.5) * self._width_us) / 1000) for slot in instants]
        return t_ms, [self._gpu(gpu, instants) for gpu in sorted(self._cells)]

    def _instants(self, used: list[int], gap_us: int) -> list[int]:
        if not used or self._width_us > 1:
            return list(range(used[0], used[-1] + 1)) if used else []
        gaps = [before + gap_us // 2 for before, after in pairwise(used) if after - before > gap_us]
        return sorted({*used, *gaps})

    def _add(
        self, gpu: tuple[str, str], slot: int, cells: dict[str, Cell], facts: tuple[int | None, int | None]
    ) -> None:
        into = self._cells.setdefault(gpu, {}).setdefault(slot, {})
        for name, (count, total, least, most) in cells.items():
            old = into.get(name, (0, 0.0, math.inf, -math.inf))
            into[name] = (old[0] + count, old[1] + total, min(old[2], least), max(old[3], most))
        known = self._facts.get(gpu, (None, None))
        self._facts[gpu] = (facts[0] or known[0], facts[1] or known[1])

    def _gpu(self, gpu: tuple[str, str], instants: list[int]) -> GpuCurves:
        slots = self._cells[gpu]
        mem_total_b, limit_mw = self._facts[gpu]
        return GpuCurves(
            gpu_uuid=gpu[0],
            instance=gpu[1],
            mem_total_b=mem_total_b,
            power_limit_w=None if limit_mw is None else limit_mw / 1000,
            **{name: self._series(name, [slots.get(slot, {}).get(name) for slot in instants]) for name in QUANTITIES},
        )

    def _series(self, name: str, cells: list[Cell | None]) -> CurveSeries | None:
        if not any(cells):
            return None

        def column(of: Any) -> list[float | None]:
            return [None if cell is None else round(of(cell), _DIGITS[name] or None) for cell in cells]

        mean = column(lambda cell: cell[1] / cell[0])
        if self._width_us == 1:
            return CurveSeries(mean=mean)
        return CurveSeries(mean=mean, min=column(lambda cell: cell[2]), max=column(lambda cell: cell[3]))


class _SampleReader:
    """Reads in two passes: the number of samples, then their sums, so that it holds no more than it sends."""

    def __init__(self, folder: Path, window: RunWindow) -> None:
        first, last = day_of(window.since_us), day_of(window.until_us)
        self._window = window
        self._unreadable: set[str] = set()
        every = days(folder), segments(folder)
        self._days = [path for path in every[0] if first <= path.stem <= last]
        self._segments = [name.path for name in every[1] if first <= name.day <= last]
        self._oldest = min([path.stem for path in every[0]] + [name.day for name in every[1]], default=None)

    def answer(self, node: str, kept_days: int, gap_us: int) -> NodeSamples:
        """Return the node's samples."""
        seen, window = self._look(), self._window
        points = min(window.points, _MOST_VALUES // max(1, min(len(seen.gpus), MOST_GPUS)))
        whole = seen.ticks <= points
        # Half of the allowed points as slots: a slot then has at least two samples, and there is no false gap.
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
        """Call `do` with each day's file; a file that cannot be read or was dropped meanwhile is left out."""
        for path in self._days:
            try:
                with contextlib.closing(Database.open(path, "node", _OPTIONS)) as day:
                    do(day)
            except (StoreError, duckdb.Error) as error:
                self._skip(path, error)

    def _unfolded(self) -> Iterator[Sample]:
        """Yield the run's samples in segments, including the open one up to its current end."""
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
    """Return whether a sample belongs to the run; its first ones have no start yet."""
    return (
        sample.job_id == window.job_id
        and window.since_us < sample.t_utc_us <= window.until_us
        and (sample.run_key is None or sample.run_key.start == window.start)
        and sample.confidence is not Confidence.CONFLICT
    )
