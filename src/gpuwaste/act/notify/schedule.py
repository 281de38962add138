"""When periods end, in the site's own zone. Times are UTC seconds."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpuwaste.core.errors import ConfigError

WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Periods end at a time of the day: every day, or on one weekday (0 is Monday). `zone` None is the host's own."""

    at: time
    weekday: int | None = None
    zone: tzinfo | None = None

    def last_end(self, at: int) -> int:
        """Return the newest end of a period that is not after `at`."""
        day = datetime.fromtimestamp(at, self.zone).date()
        while (end := self._end_on(day)) is None or end > at:
            day -= timedelta(days=1)
        return end

    def period(self, at: int) -> tuple[int, int]:
        """Return the newest period that has ended by `at`."""
        end = self.last_end(at)
        return self.last_end(end - 1), end

    def periods(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the periods that ended in (start, end], the oldest first."""
        found = []
        period = self.period(end)
        while period[1] > start:
            found.append(period)
            period = self.period(period[0])
        return found[::-1]

    def _end_on(self, day: date) -> int | None:
        if self.weekday is not None and day.weekday() != self.weekday:
            return None
        return int(datetime.combine(day, self.at, self.zone).timestamp())


def read_time(text: str) -> time:
    """Read a time of the day, such as 08:00. Raises ConfigError."""
    try:
        found = time.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None or ":" not in text or found.microsecond:
        raise ConfigError(f"[notify] at {text!r}: expected a time of the day, such as 08:00")
    return found


def read_zone(name: str) -> tzinfo | None:
    """Return a zone by its name, None for the host's own. Raises ConfigError."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"[notify] zone {name!r}: unknown time zone on this host") from error
