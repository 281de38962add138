"""Raw samples on the node: one DuckDB file per UTC day, dropped whole by age and by size.

A tick is on the disk when append() returns. A file that cannot be read is set aside under another name; a full disk
costs the oldest day. Nothing here is needed for the hours that travel: those have an outbox of their own.
"""

import contextlib
import logging
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from gpuwaste.agent.day_file import DayFile
from gpuwaste.core.errors import StoreError
from gpuwaste.core.sample import Sample

log = logging.getLogger(__name__)
_COMPACT_ROWS: Final = 11_520  # four hours of 8 GPUs at 10 s
_FILE: Final = re.compile(r"(\d{4}-\d{2}-\d{2})\.duckdb(?:\.corrupt\d*)?")
# DuckDB's words where the file itself is sound and the machine is not.
_NOT_THE_FILE: Final = re.compile(
    r"set lock|permission denied|no space|read-only file system|too many open|quota|file too large", re.IGNORECASE
)


class NodeStore:
    """The raw samples under `state_dir`/raw, for one thread. Raises StoreError where the folder cannot be used."""

    def __init__(self, state_dir: Path, retention_days: int, retention_bytes: int) -> None:
        self._folder = state_dir / "raw"
        self._retention_days = retention_days
        self._retention_bytes = retention_bytes
        self._day = ""
        self._file: DayFile | None = None
        self._since_compaction = 0
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o750)
            for leftover in self._folder.glob("*.tmp*"):
                leftover.unlink()
        except OSError as error:
            raise StoreError(f"{self._folder}: cannot be used: {error.strerror}: set [agent] state_dir") from error

    def keep(self, retention_days: int, retention_bytes: int) -> None:
        """Keep so much from the next day's begin or shortage on; for any thread."""
        self._retention_days, self._retention_bytes = retention_days, retention_bytes

    def append(self, samples: Sequence[Sample]) -> None:
        """Write the samples of one tick, durably. Raises StoreError, and the next call tries again.

        Where the write fails, the oldest day before this one is dropped and the write is tried once more.
        """
        if not samples:
            return
        day = _day(samples[0].t_utc_us)
        self._since_compaction += len(samples)
        if self._since_compaction >= _COMPACT_ROWS:
            self._since_compaction = 0
            self._close()
            self._compact(self._folder / f"{day}.duckdb", over=False)
        try:
            self._open(day).append(samples)
        except StoreError as error:
            self._close()
            if not _NOT_THE_FILE.search(str(error)) or not self._drop_oldest(day):
                raise
            log.warning("raw samples: %s: the oldest day was dropped", error)
            try:
                self._open(day).append(samples)
            except StoreError:
                self._close()
                raise

    def samples_since(self, t_us: int) -> Iterator[Sample]:
        """Yield the samples after `t_us` (UTC), oldest first; a day that cannot be read is skipped."""
        self._close()
        for path in self._days():
            if path.name[:10] < _day(t_us):
                continue
            try:
                file = self._open_or_set_aside(path)
            except StoreError as error:
                log.warning("raw samples: %s: this day is left out", error)
                continue
            try:
                yield from file.since(t_us)
            finally:
                file.close()

    def prune(self, now_us: int) -> None:
        """Drop days that are too old, then the oldest until the size fits; today's file always stays."""
        today = _day(now_us)
        oldest = (datetime.fromtimestamp(now_us / 1e6, UTC) - timedelta(days=self._retention_days)).strftime("%Y-%m-%d")
        for path in self._files():
            if path.name[:10] < oldest:
                self._drop(path)
        while self.size_b() > self._retention_bytes and self._drop_oldest(today):
            pass

    def size_b(self) -> int:
        """Return the bytes of all files, WAL included."""
        total = 0
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                total += path.stat().st_size
        return total

    def close(self) -> None:
        """Close today's file."""
        self._close()

    def _open(self, day: str) -> DayFile:
        if self._file is None or self._day != day:
            self._close()
            self._compact_before(day)
            self._file = self._open_or_set_aside(self._folder / f"{day}.duckdb")
            self._day = day
            self.prune(_noon_us(day))
        return self._file

    def _open_or_set_aside(self, path: Path) -> DayFile:
        try:
            return DayFile(path)
        except StoreError as error:
            if _NOT_THE_FILE.search(str(error)):
                raise
            aside = next(
                name for n in range(1000) if not (name := path.with_name(f"{path.name}.corrupt{n or ''}")).exists()
            )
            with contextlib.suppress(OSError):
                _wal(path).replace(_wal(aside))
            try:
                path.replace(aside)
            except OSError as problem:
                raise StoreError(f"{path}: cannot be set aside: {problem.strerror}") from error
            log.error("raw samples: %s: set aside as %s", error, aside.name)  # noqa: TRY400 one line, no traceback
        return DayFile(path)

    def _compact_before(self, day: str) -> None:
        """Write the last day before `day` anew, once; a failure leaves it as it is."""
        path = next((p for p in reversed(self._days()) if p.name[:10] < day), None)
        if path is not None:
            self._compact(path, over=True)

    def _compact(self, path: Path, *, over: bool) -> None:
        packed = path.with_name(f"{path.name}.tmp")
        try:
            file = self._open_or_set_aside(path)
            try:
                if file.compacted:
                    return
                file.compact_into(packed, over=over)
            finally:
                file.close()
            packed.replace(path)
        except (StoreError, OSError) as error:
            log.warning("raw samples: %s: not compacted: %s", path.name, error)
        finally:
            for leftover in (packed, _wal(packed)):
                with contextlib.suppress(OSError):
                    leftover.unlink()

    def _days(self) -> list[Path]:
        return [path for path in self._files() if path.suffix == ".duckdb"]

    def _files(self) -> list[Path]:
        """Return the files of all days, oldest first, those set aside included."""
        return sorted(path for path in self._folder.iterdir() if _FILE.fullmatch(path.name))

    def _drop_oldest(self, today: str) -> bool:
        """Drop the oldest file that is not today's own; false where there is none."""
        for path in self._files():
            if path.name != f"{today}.duckdb":
                return self._drop(path)
        return False

    def _drop(self, path: Path) -> bool:
        try:
            _wal(path).unlink(missing_ok=True)
            path.unlink()
        except OSError as error:
            log.warning("raw samples: %s cannot be dropped: %s", path.name, error.strerror)
            return False
        return True

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def _day(t_us: int) -> str:
    return datetime.fromtimestamp(t_us / 1e6, UTC).strftime("%Y-%m-%d")


def _noon_us(day: str) -> int:
    return int(datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()) * 1_000_000
