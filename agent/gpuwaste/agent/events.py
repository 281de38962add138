"""One log line per event: the same trouble, over and over, is said once in ten minutes with a count."""

import logging
from typing import Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.once import Once

_QUIET_US: Final = 600_000_000
_log = logging.getLogger("gpuwaste.agent")


class EventLog:
    """Tells of troubles by key, and of their end. For the threads of one agent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[str, Once] = {}

    def trouble(self, key: str, message: str, level: int = logging.WARNING) -> None:
        """Log a trouble, unless the same one of this key was logged a short while ago."""
        known = self._troubles.setdefault(key, Once())
        unsaid = known.unsaid
        if known.news(message, self._clock.mono_us(), _QUIET_US):
            _log.log(level, "%s: %s%s", key, message, f" ({unsaid} repeats suppressed)" if unsaid else "")

    def over(self, key: str) -> None:
        """Log that the trouble of this key, if there was one, has ended."""
        if self._troubles.pop(key, None):
            _log.info("%s: works again", key)

    def note(self, message: str) -> None:
        """Log something that is no trouble."""
        _log.info("%s", message)
