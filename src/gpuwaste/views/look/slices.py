"""Accounting read in slices of time, the newest first: one sacct at a time, with a pause after each.

Slurmdbd answers everybody from one database: a long query makes jobs' own records wait. A slice is a day at most, and
shorter where answers take long.
"""

import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol

from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import SlurmError
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.slurm.accounting.sacct_rows import ADMIN_COMMENT
from gpuwaste.slurm.clients.command import CommandError
from gpuwaste.views.look.folder import Interval, LookFolder

_QUICK: Final = 0.25
_LINES: Final = 1000  # between two looks at the clock
_SECOND_US: Final = 1_000_000


_COLUMNS: Final = (
    *("JobIDRaw", "JobID", "User", "UID", "Account", "Partition", "QOS", "State", "Submit", "Eligible", "Start", "End"),
    *("ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "AllocCPUS", "ReqMem", "ReqTRES", "AllocTRES", "NodeList"),
    *("Priority", "Flags", "Reason", "Constraints", "Reservation", "Restarts", "SubmitLine", ADMIN_COMMENT, "ExitCode"),
)


def job_columns(available: Iterable[str]) -> tuple[str, ...]:
    """Return the columns to request, of those that this sacct has: no names of jobs and no users' comments."""
    known = frozenset(available)
    return tuple(name for name in _COLUMNS if name in known)


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """How politely accounting is read, in seconds.

    No query begins after `total_s`, and one that runs then is stopped. After each there is a pause of `pause` times its
    length. Slices become half as long after an answer of more than `answer_s`, down to `least_s`.
    """

    total_s: float = 300.0
    slice_s: int = DAY_S
    least_s: int = HOUR_S
    answer_s: float = 10.0
    silence_s: float = 60.0
    pause: float = 0.5


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """What was not read, the earliest first, and why; both are empty where everything was."""

    unread: list[Interval]
    reason: str


class JobLines(Protocol):
    """Source of sacct's lines."""

    def __call__(self, start: int, end: int, timeout_s: float) -> Generator[bytes]:
        """Yield the lines of the jobs that overlap [start, end], UTC seconds. Raises SlurmError."""
        ...


Progress = Callable[[int, int, int], None]
"""progress(read_s, total_s, lines): the time that was read, of how much, and the lines so far."""


@dataclass(slots=True)
class SliceReader:
    """Reads the slices of a folder that it does not have."""

    folder: LookFolder
    ask: JobLines
    clock: Clock
    limits: ReadingLimits = ReadingLimits()
    progress: Progress = lambda *_: None

    def read(self, start: int, end: int, header: bytes) -> ReadingResult:
        """Read what the folder does not have of [start, end], UTC seconds; each slice is kept as it is complete."""
        size, lines, reason = self.limits.slice_s, 0, ""
        began, stop = self.clock.mono_us(), threading.Event()
        deadline = began + int(self.limits.total_s * _SECOND_US)
        while gaps := self.folder.gaps(start, end):
            first, last = gaps[-1]
            self.progress(end - start - _length(gaps), end - start, lines)
            asked = self.clock.mono_us()
            try:
                lines += self._slice(max(first, (last - 1) // size * size), last, header, deadline)
            except _TimeIsUpError:
                reason = f"the time limit of {self.limits.total_s:g} s was reached"
                break
            except SlurmError as error:
                refused = isinstance(error, CommandError) and error.code is not None
                if refused or size <= self.limits.least_s:
                    reason = str(error)
                    break
                size = max(self.limits.least_s, size // 2)
            took_s = (self.clock.mono_us() - asked) / _SECOND_US
            size = self._next_size(size, took_s)
            self.clock.wait(stop, took_s * self.limits.pause)
        return ReadingResult(self.folder.gaps(start, end), reason)

    def _slice(self, start: int, end: int, header: bytes, deadline: int) -> int:
        """Read one slice; return its lines. Raises SlurmError, _TimeIsUpError."""
        left_s = self._left_s(deadline)
        with closing(self.ask(start, end, min(left_s, self.limits.silence_s))) as found:
            try:
                return self.folder.keep(start, end, header, self._until(found, deadline))
            except SlurmError:
                self._left_s(deadline)
                raise

    def _until(self, lines: Iterable[bytes], deadline: int) -> Generator[bytes]:
        for number, line in enumerate(lines):
            if number % _LINES == 0:
                self._left_s(deadline)
            yield line

    def _left_s(self, deadline: int) -> float:
        left = deadline - self.clock.mono_us()
        if left <= 0:
            raise _TimeIsUpError
        return left / _SECOND_US

    def _next_size(self, size: int, took_s: float) -> int:
        if took_s > self.limits.answer_s:
            return max(self.limits.least_s, size // 2)
        return min(self.limits.slice_s, size * 2) if took_s < self.limits.answer_s * _QUICK else size


class _TimeIsUpError(Exception):
    """The time for all slices together is over."""


def _length(intervals: Iterable[Interval]) -> int:
    return sum(end - start for start, end in intervals)
