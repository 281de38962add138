"""Raw samples on the node: segments that the agent appends to, and one DuckDB file per UTC day.

A tick is on the disk when append() returns. Every quarter of an hour, at a day's end and before samples are read, a
child (fold.py) moves finished segments into the days' files; the agent itself never loads DuckDB. Full days are dropped
by age and by size; on a full disk the oldest data is dropped. Nothing here is needed for the hours sent to the hub:
those have a separate outbox.
"""

import contextlib
import errno
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from gpuwaste.agent.child import exit_words, start_child
from gpuwaste.agent.segment import Segment, day_of, from_line, segments
from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.ledger.gpu_sample import Sample

_DROPPED: Final = log_event.warning(
    "raw-samples-dropped: deleted the oldest day of raw samples: {error}",
    "The disk is full. Free space; reports do not need raw samples.",
)
_READER_ENDED: Final = log_event.warning(
    "raw-samples-reader-ended: the child that reads raw samples ended with {status}",
    "Killed or ended early at the start of the agent; another child continues, three at most. Out of memory?",
)
_NO_CHILD: Final = log_event.warning(
    "raw-samples-no-child: cannot start the child that folds raw samples, retry with the next segment: {error}",
    "Check the limits of tasks and memory. Samples stay in segments.",
)
_FOLDER_ENDED: Final = log_event.warning(
    "raw-samples-folder-ended: the child that folds raw samples ended with {status}, retry with the next segment",
    "Killed (signal 9: out of memory?) or too slow (signal 14). Samples stay in segments; nothing is lost.",
)
_NOT_DELETED: Final = log_event.warning(
    "raw-samples-not-deleted: cannot delete {file}: {error}",
    "Check the permissions of `[agent] state_dir`; its disk fills up.",
)
RAW: Final = "raw"
_SEGMENT_US: Final = 15 * 60 * 1_000_000
_SEGMENT_B: Final = 4 << 20
_PACK_SEGMENTS: Final = 16  # four hours, after which today's file is rewritten
_CHILD_S: Final = 1800.0
_READS: Final = 3  # children that may fail before a read is given up
_FILE: Final = re.compile(r"(?:\d{8,}-)?(\d{4}-\d{2}-\d{2})\.(?:duckdb|samples)(?:\.corrupt\d*)?")
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class NodeStore(Part):
    """The raw samples under `state_dir`/raw, for one thread. Raises StoreError where the folder cannot be used."""

    def __init__(self, state_dir: Path, retention_days: int, retention_bytes: int) -> None:
        self._folder = state_dir / RAW
        self.retention_days = retention_days
        self._retention_bytes = retention_bytes
        self._segment: Segment | None = None
        self._began_us = 0  # monotonic time of the segment's first tick
        self._child: subprocess.Popen[bytes] | None = None
        self._child_until_s = 0.0
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o750)
            self._next = 1 + max((name.number for name in segments(self._folder)), default=0)
        except OSError as error:
            raise StoreError(f"{self._folder}: cannot be used: {error.strerror}: set [agent] state_dir") from error

    def keep(self, retention_days: int, retention_bytes: int) -> None:
        """Use these limits from the next segment or shortage on. Thread-safe."""
        self.retention_days, self._retention_bytes = retention_days, retention_bytes

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an agent."""
        agent = parts.get(Config).agent
        return cls(Path(agent.state_dir), agent.retention_days, agent.retention_bytes)

    @property
    def reloads(self) -> Reloads:
        """The retention limits."""
        keys = ("agent.retention_days", "agent.retention_bytes")
        return {keys: lambda c: self.keep(c.agent.retention_days, c.agent.retention_bytes)}

    def append(self, samples: Sequence[Sample]) -> None:
        """Write the samples of one tick, durably. Raises StoreError, and the next call tries again.

        If the disk is full, the oldest day before this one is dropped and the write is tried once more.
        """
        if not samples:
            return
        self._reap()
        try:
            self._write(samples)
        except OSError as error:
            self._end_segment()
            if error.errno not in _FULL or not self._drop_oldest(day_of(samples[0].t_utc_us), today_too=False):
                raise self._refused(error) from error
            _DROPPED.log(error=self._refused(error))
            try:
                self._write(samples)
            except OSError as again:
                self._end_segment()
                raise self._refused(again) from again

    def _write(self, samples: Sequence[Sample]) -> None:
        day, mono_us = day_of(samples[0].t_utc_us), samples[0].mono_us
        open_one = self._segment
        if open_one is not None and (
            open_one.day != day or open_one.size_b >= _SEGMENT_B or not 0 <= mono_us - self._began_us < _SEGMENT_US
        ):
            self._end_segment()
            self.prune(samples[0].t_utc_us)
            self._start_fold(day)
        if self._segment is None:
            self._segment, self._began_us = Segment(self._folder, self._next, day), mono_us
            self._next += 1
        self._segment.append(samples)

    def samples_since(self, t_us: int) -> Iterator[Sample]:
        """Yield the samples after `t_us` (UTC), oldest first; a day that cannot be read is skipped.

        A child folds finished segments and prints; if it fails, another continues after its last tick.
        """
        self._end_segment()
        for _ in range(_READS):
            child = self._run(f"since_us={t_us}", subprocess.PIPE)
            with child, contextlib.closing(child.stdout):  # type: ignore[type-var]  # it was opened with a pipe
                for line in child.stdout or ():
                    if line.endswith(b"\n"):
                        samples = self._ticks_of(line)
                        yield from samples
                        t_us = max(t_us, samples[0].t_utc_us)
            if child.returncode == 0:
                return
            _READER_ENDED.log(status=exit_words(child.returncode))
        raise StoreError(f"{self._folder}: raw samples cannot be read: time that was not sent yet is unknown")

    def _ticks_of(self, line: bytes) -> list[Sample]:
        try:
            return from_line(line)
        except (ValueError, TypeError) as error:
            raise StoreError(f"{self._folder}: a child wrote a line that is no tick: {error}") from error

    def prune(self, now_us: int) -> None:
        """Drop days that are too old, then the oldest file until the size fits; today's day file always stays."""
        today = day_of(now_us)
        oldest = (datetime.fromtimestamp(now_us / 1e6, UTC) - timedelta(days=self.retention_days)).strftime("%Y-%m-%d")
        for path in self._files():
            if _day(path) < oldest:
                self._drop(path)
        while self.size_b() > self._retention_bytes and self._drop_oldest(today, today_too=True):
            pass

    def size_b(self) -> int:
        """Return the bytes of all files, WAL included."""
        total = 0
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                total += path.stat().st_size
        return total

    def close(self) -> None:
        """End the segment. A running child is killed: the next agent's child continues."""
        self._end_segment()
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None

    def _end_segment(self) -> None:
        if self._segment is not None:
            with contextlib.suppress(OSError):
                self._segment.close()
        self._segment = None

    def _start_fold(self, today: str) -> None:
        """Start a child on all finished segments, unless one still runs: the next one processes the rest."""
        if self._child is not None:
            return
        try:
            pack = self._next % _PACK_SEGMENTS == 0
            self._child = self._run(f"today={today!r}, pack_today={pack}", subprocess.DEVNULL)
        except StoreError as error:
            _NO_CHILD.log(error=error)
        self._child_until_s = time.monotonic() + _CHILD_S

    def _reap(self) -> None:
        """Collect a child that has ended, and kill one that hangs."""
        child = self._child
        if child is None:
            return
        if child.poll() is None:
            if time.monotonic() > self._child_until_s:
                child.kill()
            return
        self._child = None
        if child.returncode not in {0, 1}:  # 1: it has logged why
            _FOLDER_ENDED.log(status=exit_words(child.returncode))

    def _run(self, more: str, stdout: int) -> "subprocess.Popen[bytes]":
        return start_child("fold", f"Path({str(self._folder)!r}), {self._next}, {more}", stdout)

    def _refused(self, error: OSError) -> StoreError:
        return StoreError(f"{error.filename or self._folder}: samples cannot be written: {error.strerror}")

    def _files(self) -> list[Path]:
        """Return all files, oldest first, those set aside included; a day's own file before its segments."""
        found = (path for path in self._folder.iterdir() if _FILE.fullmatch(path.name))
        return sorted(found, key=lambda path: (_day(path), ".samples" in path.name, path.name))

    def _drop_oldest(self, today: str, *, today_too: bool) -> bool:
        """Drop the oldest file except today's own and the open segment; return False if there is none.

        `today_too`: also today's finished segments, which accumulate only if no child can fold them.
        """
        spared = {f"{today}.duckdb", self._segment.path.name if self._segment else ""}
        return any(
            path.name not in spared and (today_too or not path.name.endswith(f"-{today}.samples")) and self._drop(path)
            for path in self._files()
        )

    def _drop(self, path: Path) -> bool:
        try:
            path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
        except OSError as error:
            _NOT_DELETED.log(file=path.name, error=error.strerror)
            return False
        return True


def _day(path: Path) -> str:
    match = _FILE.fullmatch(path.name)
    return match[1] if match else ""
