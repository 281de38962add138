"""The clock of a played recording: it stands still until the player sets it on."""

import threading

from gpuwaste.core.clock import Clock

_TURN_S = 0.002  # what a waiting thread leaves to the others before it looks again


class PlayedClock(Clock):
    """A Clock that shows recorded times; any thread may ask, the player alone sets it."""

    def __init__(self, utc_us: int) -> None:
        self._now = (utc_us, utc_us)

    def set(self, utc_us: int, mono_us: int | None = None) -> None:
        """Show these times; the steady clock goes on with the wall clock where it is not told."""
        before_utc, before_mono = self._now
        self._now = (utc_us, before_mono + max(0, utc_us - before_utc) if mono_us is None else mono_us)

    def utc_us(self) -> int:
        """Return the recorded wall clock."""
        return self._now[0]

    def mono_us(self) -> int:
        """Return the recorded steady clock."""
        return self._now[1]

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Let other threads run; recorded time does not pass by waiting."""
        return stop.wait(min(max(seconds, 0.0), _TURN_S))
