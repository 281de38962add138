"""The files written by prolog and epilog: JOBS_DIR/JOBID.start and JOBID.end, key=value lines.

A file's own time (mtime) is the event's time. A file that is a symbolic link, too big, or whose job id is not a number
is not read. The directory belongs to root: the epilog removes old files.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpuwaste.agent.facts.run_facts import LocalRun, PositionFacts
from gpuwaste.core.errors import ParseError
from gpuwaste.ledger.gpu_sample import MapSource
from gpuwaste.slurm.formats.gpu_positions import parse_positions

_MAX_BYTES: Final = 4096
_MAX_ID: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class JobFile:
    """One file: when it was written, and its fields."""

    time_us: int
    fields: dict[str, str] = field(default_factory=dict)

    def number(self, key: str) -> int | None:
        """Return a field that is a whole number."""
        text = self.fields.get(key, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None  # noqa: PLR2004 seconds


class PrologSource:
    """Reads new files of the directory once each."""

    name = MapSource.PROLOG

    def __init__(self, jobs_dir: Path) -> None:
        self._dir = jobs_dir
        self.health = ""
        self.starts: dict[int, JobFile] = {}
        self.ends: dict[int, JobFile] = {}
        self._seen: dict[str, tuple[int, int]] = {}  # file name -> (inode, mtime)

    def scan(self) -> None:
        """Read new files, and forget those that are gone."""
        names = set[str]()
        self.health = ""
        try:
            with os.scandir(self._dir) as entries:
                names = {entry.name for entry in entries if self._take(entry)}
        except OSError as error:
            self.health = f"{self._dir}: {error.strerror}: no prolog files"
        for name in self._seen.keys() - names:
            self._forget(name)

    def facts(self, run: LocalRun) -> PositionFacts | None:
        """Return the positions that the run's prolog received. None does not mean "no GPU": Slurm may not pass any."""
        file = self.starts.get(run.job_id)
        if file is None or run.prolog_us != file.time_us:
            return None
        with suppress(ParseError):
            positions = frozenset(parse_positions(file.fields.get("gpus", "")))
            if positions:
                shards = file.number("shards")
                return PositionFacts(positions, shards or None)
        return None

    def _take(self, entry: os.DirEntry[str]) -> bool:
        """Read an entry if it is new; return whether it is a file of a job."""
        job, _, kind = entry.name.partition(".")
        if kind not in {"start", "end"} or not (job.isascii() and job.isdigit() and 0 < int(job) <= _MAX_ID):
            return False
        try:
            status = entry.stat(follow_symlinks=False)
            identity = (status.st_ino, status.st_mtime_ns)
            if self._seen.get(entry.name) != identity:
                file = _read(entry.path, status)
                (self.starts if kind == "start" else self.ends)[int(job)] = file
                self._seen[entry.name] = identity
        except OSError:
            return False
        return True

    def _forget(self, name: str) -> None:
        del self._seen[name]
        job, _, kind = name.partition(".")
        (self.starts if kind == "start" else self.ends).pop(int(job), None)


def _read(path: str, status: os.stat_result) -> JobFile:
    """Read one regular file. Raises OSError."""
    time_us = status.st_mtime_ns // 1000
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
        return JobFile(time_us)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        text = os.read(descriptor, _MAX_BYTES).decode("ascii", "replace")
    finally:
        os.close(descriptor)
    pairs = (line.partition("=") for line in text.splitlines())
    return JobFile(time_us, {key: value for key, equals, value in pairs if equals})
