"""Clocks that a test moves: one that stands still, and the machine's clocks set to another time."""

import threading
from collections.abc import Callable

from gpuwaste.core.clock import Clock, SystemClock


class FakeClock(Clock):
    """Stands still: time passes by `advance` and `wait` alone, and no thread waits. The steady clock begins at 0.

    `waits` has the seconds of each wait; `on_wait` is called after each.
    """

    on_wait: Callable[[], None] | None = None

    def __init__(self, now_s: float = 1_700_000_000) -> None:
        self.now_us = round(now_s * 1e6)
        self.steady_us = 0
        self.waits: list[float] = []

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now_us += round(seconds * 1e6)
        self.steady_us += round(seconds * 1e6)

    def utc_us(self) -> int:
        """Return the wall clock."""
        return self.now_us

    def mono_us(self) -> int:
        """Return the steady clock."""
        return self.steady_us

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Pass the time at once."""
        if stop.is_set():
            return True
        self.waits.append(seconds)
        self.advance(seconds)
        if self.on_wait:
            self.on_wait()
        return stop.is_set()


class ShiftedClock(SystemClock):
    """The machine's clocks, the wall clock set to `now_s` where that is given; threads wait in real time.

    A test sets the wall clock on by `later_s`, the steady one by `steady_later_s`.
    """

    def __init__(self, now_s: int | None = None) -> None:
        self._ahead_us = 0 if now_s is None else now_s * 1_000_000 - super().utc_us()
        self.later_s = 0
        self.steady_later_s = 0

    def utc_us(self) -> int:
        """Return the time."""
        return super().utc_us() + self._ahead_us + self.later_s * 1_000_000

    def mono_us(self) -> int:
        """Return the time."""
        return super().mono_us() + self.steady_later_s * 1_000_000


class StandingClock(SystemClock):
    """The machine's steady clock, and a wall clock that stays where a test sets it, however long the host takes."""

    def __init__(self, now_s: int) -> None:
        self.now_s = now_s

    def utc_us(self) -> int:
        """Return the time that was set."""
        return self.now_s * 1_000_000


class StoppedClock(StandingClock):
    """Both clocks stay where a test sets them; threads wait in real time."""

    def __init__(self, now_s: int) -> None:
        super().__init__(now_s)
        self.steady_s = 0

    def mono_us(self) -> int:
        """Return the time that was set."""
        return self.steady_s * 1_000_000

    def go_on(self, seconds: int) -> None:
        """Let both go on."""
        self.now_s += seconds
        self.steady_s += seconds
