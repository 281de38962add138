"""A lasting problem is logged once: repeats are counted until its text changes, a quiet time passes, or it ends."""

from dataclasses import dataclass
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.log_event import LogEvent

_QUIET_S: Final = 600.0
_OVER: Final = log_event.info("works-again: {about} works again")


@dataclass(slots=True)
class RepeatSuppressor:
    """One lasting problem: its text, how often it occurred in a row, and how often since it was logged."""

    words: str = ""
    times: int = 0
    repeats: int = 0
    _logged_us: int = 0

    def news(self, words: str, now_us: int = 0, quiet_us: int | None = None) -> bool:
        """Count the problem; return whether to log it: new, another text, or not logged for `quiet_us`."""
        known = self.times > 0 and words == self.words
        self.times += 1
        if known and (quiet_us is None or now_us - self._logged_us < quiet_us):
            self.repeats += 1
            return False
        self.words, self.repeats, self._logged_us = words, 0, now_us
        return True

    def over(self) -> int:
        """End the problem; return how often it occurred, 0 where there was none."""
        times = self.times
        self.words, self.times, self.repeats = "", 0, 0
        return times


class EventLog:
    """Logs problems and their end, each by its subject. For the threads of one daemon."""

    def __init__(self, clock: Clock, quiet_s: float = _QUIET_S) -> None:
        """Log the same problem again after `quiet_s`."""
        self._clock = clock
        self._quiet_us = int(quiet_s * 1e6)
        self._troubles: dict[str, RepeatSuppressor] = {}

    def trouble(self, event: LogEvent, about: str, /, **fields: object) -> None:
        """Log a problem, unless the same one of `about` was logged a short while ago."""
        self._log(" ".join((event.id, *map(str, fields.values()))), event, about, **fields)

    def caused(self, event: LogEvent, kind: str, /, **fields: object) -> None:
        """Log what a peer can cause at will, unless a line of this kind was logged a short while ago.

        The kinds of an event are few and ours: another text or another peer does not add a line.
        """
        self._log("", event, f"{event.id} {kind}", **fields)

    def over(self, about: str) -> None:
        """Log that the problem of `about`, if there was one, has ended."""
        if self._troubles.pop(about, None):
            _OVER.log(about=about)

    def _log(self, words: str, event: LogEvent, about: str, /, **fields: object) -> None:
        known = self._troubles.setdefault(about, RepeatSuppressor())
        repeats = known.repeats
        if known.news(words, self._clock.mono_us(), self._quiet_us):
            event.log(repeats=repeats, about=about, **fields)
