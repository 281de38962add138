"""Events of the log: each is declared once, next to the code that logs it, as "id: text with {fields}" and a remedy.

A line of the log begins with the id. docs/reference/events.md is generated from these declarations, so a warning or an
error cannot be declared without its remedy: what it means for the reader and what they do about it.
"""

import logging
import sys
from typing import Final

EVENTS: Final[list["LogEvent"]] = []  # of every module that was imported


class LogEvent:
    """One kind of line; `log` takes a value for each field of its text."""

    def __init__(self, level: int, line: str, remedy: str) -> None:
        self.id, _, self.text = line.partition(": ")
        self.level, self.remedy = level, remedy
        self.module: str = sys._getframe(2).f_globals["__name__"]  # noqa: SLF001 the declaring module, as namedtuple does
        self._logger = logging.getLogger(self.module)
        EVENTS.append(self)

    def log(self, trace: BaseException | None = None, /, *, repeats: object = 0, **fields: object) -> None:
        """Log it once; `trace` ends the line with that exception, `repeats` is how many were suppressed before."""
        line = _LogText(self.text, fields, repeats)
        self._logger.log(self.level, line, exc_info=trace, extra={"event": self.id}, stacklevel=2)


class _LogText:
    """A text that is formatted when the record is written: a field that fails there raises nothing here."""

    __slots__ = ("_fields", "_repeats", "_text")

    def __init__(self, text: str, fields: dict[str, object], repeats: object) -> None:
        self._text, self._fields, self._repeats = text, fields, repeats

    def __str__(self) -> str:
        text = self._text.format_map(self._fields)
        return f"{text} ({self._repeats} repeats suppressed)" if self._repeats else text


def info(line: str) -> LogEvent:
    """Declare an event that needs no action: a start, an end, something that works again."""
    return LogEvent(logging.INFO, line, "")


def warning(line: str, remedy: str) -> LogEvent:
    """Declare an event that somebody should check; the service does its work."""
    return LogEvent(logging.WARNING, line, remedy)


def error(line: str, remedy: str) -> LogEvent:
    """Declare an event that keeps the service from a part of its work."""
    return LogEvent(logging.ERROR, line, remedy)


def critical(line: str, remedy: str) -> LogEvent:
    """Declare an event that ends the service."""
    return LogEvent(logging.CRITICAL, line, remedy)


BUG: Final = error(
    "gpuwaste-bug: {what} skipped, traceback at the end of the line",
    "A bug in gpuwaste; the service continues. Report the whole line.",
)
