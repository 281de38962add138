"""One log line per event: the same trouble, over and over, is said once in ten minutes with a count."""

import logging
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.clock import Clock

_QUIET_US: Final = 600_000_000
_log = logging.getLogger("gpuwaste.agent")


@dataclass(slots=True)
class _Trouble:
    message: str
    said_us: int
    unsaid: int = 0


class Events:
    """Tells of troubles by key, and of their end. For the threads of one agent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}

    def trouble(self, key: str, message: str, level: int = logging.WARNING) -> None:
        """Log a trouble, unless the same one of this key was logged a short while ago."""
        now_us = self._clock.mono_us()
        known = self._troubles.get(key)
        if known and known.message == message and now_us - known.said_us < _QUIET_US:
            known.unsaid += 1
            return
        more = f" (and {known.unsaid} times unsaid)" if known and known.unsaid else ""
        self._troubles[key] = _Trouble(message, now_us)
        _log.log(level, "%s: %s%s", key, message, more)

    def over(self, key: str) -> None:
        """Log that the trouble of this key, if there was one, has ended."""
        if self._troubles.pop(key, None):
            _log.info("%s: works again", key)

    def note(self, message: str) -> None:
        """Log something that is no trouble."""
        _log.info("%s", message)
