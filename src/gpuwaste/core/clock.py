"""Time as an injected object: wall clock in UTC, steady clock, waiting, budgets of CPU time; never monkeypatched."""

import threading
import time
from typing import Final, Protocol

from gpuwaste.core.errors import GpuwasteError

_SET_US: Final = 2_000_000  # chrony slews less than this between two ticks; a larger step: the clock was set


class Clock(Protocol):
    """The clock that the daemons use."""

    def utc_us(self) -> int:
        """Wall clock, microseconds since the epoch, UTC; may step."""
        ...

    def utc_s(self) -> int:
        """Wall clock, whole seconds since the epoch, UTC; may step."""
        return self.utc_us() // 1_000_000

    def mono_us(self) -> int:
        """Steady clock, microseconds since an arbitrary origin; never steps back."""
        ...

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait up to `seconds` of steady time; true as soon as `stop` is set."""
        ...


class SystemClock(Clock):
    """The host's clocks."""

    def utc_us(self) -> int:
        """Return CLOCK_REALTIME in microseconds."""
        return time.time_ns() // 1000

    def mono_us(self) -> int:
        """Return CLOCK_MONOTONIC in microseconds."""
        return time.monotonic_ns() // 1000

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Block the calling thread."""
        return stop.wait(max(0.0, seconds))


class StepDetector:
    """Detects whether the wall clock was set since the previous instant, by comparing it with the steady clock."""

    def __init__(self) -> None:
        self._before: tuple[int, int] | None = None

    def stepped(self, utc_us: int, mono_us: int) -> bool:
        """Take an instant and return whether the clock was set before it; false for a first one."""
        before, self._before = self._before, (utc_us, mono_us)
        return before is not None and abs((utc_us - before[0]) - (mono_us - before[1])) > _SET_US

    def forget(self) -> None:
        """Treat the next instant as a first one: the steady clock may belong to another boot."""
        self._before = None


class NotReadError(GpuwasteError):
    """Reading a text takes more CPU than the request may use."""


class ReadingBudget(Protocol):
    """The limit that a reader checks between two steps."""

    def check(self) -> None:
        """Raise NotReadError where nothing is left."""
        ...


class CpuBudget:
    """CPU seconds of the creating thread, counted from creation on: waiting, and other threads, do not count."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.thread_time() + seconds

    def check(self) -> None:
        """Raise NotReadError where nothing is left."""
        if time.thread_time() > self._until:
            raise NotReadError(f"reading takes more than {self._seconds * 1e3:g} ms of CPU")


class _Unlimited:
    def check(self) -> None:
        """Do nothing."""


UNLIMITED: Final[ReadingBudget] = _Unlimited()
