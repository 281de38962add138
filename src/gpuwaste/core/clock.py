"""Time as a collaborator: the wall clock in UTC, the steady clock, and waiting, passed in and never patched."""

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """What the daemons ask of time."""

    def utc_us(self) -> int:
        """Wall clock, microseconds since the epoch, UTC; may step."""
        ...

    def mono_us(self) -> int:
        """Steady clock, microseconds since an arbitrary origin; never steps back."""
        ...

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Wait up to `seconds` of steady time; true as soon as `stop` is set."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def utc_us(self) -> int:
        """Return CLOCK_REALTIME in microseconds."""
        return time.time_ns() // 1000

    def mono_us(self) -> int:
        """Return CLOCK_MONOTONIC in microseconds."""
        return time.monotonic_ns() // 1000

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Block the calling thread."""
        return stop.wait(max(0.0, seconds))
