"""One log line per event: the same trouble, over and over, is said once in ten minutes with a count."""

from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.log_event import LogEvent
from gpuwaste.core.once import Once

_QUIET_US: Final = 600_000_000
_OVER: Final = log_event.info("works-again: {about} works again")


class EventLog:
    """Logs troubles and their end, each by what it is about. For the threads of one agent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[str, Once] = {}

    def trouble(self, event: LogEvent, about: str, /, **fields: object) -> None:
        """Log a trouble, unless the same one of `about` was logged a short while ago."""
        known = self._troubles.setdefault(about, Once())
        repeats = known.repeats
        if known.news(" ".join((event.id, *map(str, fields.values()))), self._clock.mono_us(), _QUIET_US):
            event.log(repeats=repeats, about=about, **fields)

    def over(self, about: str) -> None:
        """Log that the trouble of `about`, if there was one, has ended."""
        if self._troubles.pop(about, None):
            _OVER.log(about=about)
