"""One log line per event: the same trouble, over and over, is logged once in ten minutes with a count."""

from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.log_event import LogEvent
from gpuwaste.core.once import Once

_QUIET_S: Final = 600.0
_OVER: Final = log_event.info("works-again: {about} works again")


class EventLog:
    """Logs troubles and their end, each by what it is about. For the threads of one daemon."""

    def __init__(self, clock: Clock, quiet_s: float = _QUIET_S) -> None:
        """Log the same trouble again after `quiet_s`."""
        self._clock = clock
        self._quiet_us = int(quiet_s * 1e6)
        self._troubles: dict[str, Once] = {}

    def trouble(self, event: LogEvent, about: str, /, **fields: object) -> None:
        """Log a trouble, unless the same one of `about` was logged a short while ago."""
        self._log(" ".join((event.id, *map(str, fields.values()))), event, about, **fields)

    def caused(self, event: LogEvent, kind: str, /, **fields: object) -> None:
        """Log what a peer can cause as often as they like, unless a line of this kind was logged a short while ago.

        The kinds of an event are few and ours: neither other words nor other peers make a line more.
        """
        self._log("", event, f"{event.id} {kind}", **fields)

    def over(self, about: str) -> None:
        """Log that the trouble of `about`, if there was one, has ended."""
        if self._troubles.pop(about, None):
            _OVER.log(about=about)

    def _log(self, words: str, event: LogEvent, about: str, /, **fields: object) -> None:
        known = self._troubles.setdefault(about, Once())
        repeats = known.repeats
        if known.news(words, self._clock.mono_us(), self._quiet_us):
            event.log(repeats=repeats, about=about, **fields)
