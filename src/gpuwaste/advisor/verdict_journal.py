"""The journal: each verdict is one line of JSON in a spool file before the reply, so that kill -9 loses none.

An append costs microseconds and no fsync: data in the kernel survive a killed process. The lines are moved within
seconds to the outbox, which is also safe against a power cut. While the disk is full lines wait in memory, up to a
limit, and answers are sent all the same.
"""

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from gpuwaste.advice.verdicts.verdict_batch import encode_verdict
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.core import log_event
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.jobs.verdict import Verdict

MAX_HELD: Final = 20_000  # lines in memory while nothing can be written: about 20 MB
SPOOL: Final = "spool"
SUFFIX: Final = ".jsonl"
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
_IN_MEMORY: Final = log_event.error(
    "verdicts-in-memory: {path}: cannot write verdicts, they wait in memory: {error}: free space",
    "The disk of `[advisor] state_dir` is full or not writable. Advice continues; verdicts that wait are lost if the "
    "advisor ends.",
)


class VerdictJournal(Part):
    """`write`, `swap` and `held` on the loop's thread; files that were swapped out belong to the writer's."""

    def __init__(self, directory: Path, clock_us: Callable[[], int]) -> None:
        """Begin a new file, in addition to those that a killed advisor left. Raises StoreError."""
        self.directory = directory
        self.lost = 0  # verdicts for which neither disk nor memory had room
        self._clock_us = clock_us
        self._held: deque[bytes] = deque()
        self._torn = False
        self._said = RepeatSuppressor()
        self._count = 0
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o750)
        except OSError as error:
            raise StoreError(f"{directory}: cannot be created: {error.strerror}: see [advisor] state_dir") from error
        self._path, self._fd = self.open_next()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor. Raises StoreError."""
        ports = parts.get(AdvisorPorts)
        return cls(ports.state_dir / SPOOL, ports.clock.utc_us)

    def left(self) -> list[Path]:
        """Return the files that are no longer written to, the oldest first."""
        return sorted(path for path in self.directory.glob(f"*{SUFFIX}") if path != self._path)

    def open_next(self) -> tuple[Path, int]:
        """Open a new file; for the writer's thread, which hands it to `swap`. Raises StoreError."""
        path = self.directory / f"{self._clock_us():020d}-{os.getpid()}{SUFFIX}"
        try:
            return path, os.open(path, _FLAGS, 0o640)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from error

    def swap(self, path: Path, number: int) -> tuple[Path, int, list[bytes]]:
        """Continue in another file; return the old file, its descriptor, and the lines held in memory."""
        old = self._path, self._fd, list(self._held)
        self._path, self._fd = path, number
        self._held.clear()
        self._torn, self._count = False, 0
        return old

    @property
    def count(self) -> int:
        """The number of verdicts since the last swap."""
        return self._count

    def hold(self, lines: list[bytes]) -> None:
        """Take back lines that could not be stored; the newest are dropped if there is no room."""
        for line in lines:
            self._keep(line)

    def write(self, verdict: Verdict) -> None:
        """Append a verdict; if that fails it waits in memory. Raises nothing."""
        line = encode_verdict(verdict).line + b"\n"
        self._count += 1
        if self._held:
            self._keep(line)
            return
        data = b"\n" + line if self._torn else line
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            self._trouble(error.strerror or str(error))
            self._keep(line)
            return
        if written == len(data):
            self._torn = False
            return
        self._torn = True  # the disk became full in the middle of the line: the next write starts a new line
        self._trouble("no space for a complete line")
        self._keep(line)

    def flush(self) -> None:
        """Try again to write held lines, without a swap: at the end, or before the writer exists."""
        held, self._held = self._held, deque()
        data = (b"\n" if self._torn else b"") + b"".join(held)
        try:
            if data and os.write(self._fd, data) == len(data):
                return
        except OSError as error:
            self._trouble(error.strerror or str(error))
        self._held = held

    def close(self) -> None:
        """Close the file, which is then one of `left`; nothing can be written after that."""
        if self._fd < 0:
            return
        self.flush()
        os.close(self._fd)
        self._path, self._fd, self._count = Path(), -1, 0

    def _keep(self, line: bytes) -> None:
        if len(self._held) >= MAX_HELD:
            self.lost += 1
            return
        self._held.append(line)

    def _trouble(self, words: str) -> None:
        if self._said.news(words):
            _IN_MEMORY.log(path=self.directory, error=words)
