"""A part of the day, such as quiet hours or the hours of a policy: one format, "20:00-07:00", in every file."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gpuwaste.core.errors import ConfigError

DAY_MINUTES: Final = 24 * 60
_HOURS: Final = re.compile(r"(\d{2}):(\d{2})-(\d{2}):(\d{2})", re.ASCII)
_WHOLE: Final = re.compile(r"(\d{1,2})-(\d{1,2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hours:
    """A part of the day, minutes from local midnight; it spans midnight where `end` is not after `begin`."""

    begin: int
    end: int

    def hold(self, at: datetime) -> bool:
        """Return whether the time of day is within the hours; the end is not."""
        minute = at.hour * 60 + at.minute
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end

    def __str__(self) -> str:
        return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in (self.begin, self.end))


def parse_day_hours(value: Any, where: str) -> Hours:
    """Read HH:MM-HH:MM. Raises ConfigError, which shows what to write for whole hours such as 20-7."""
    found = _HOURS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        whole = _WHOLE.fullmatch(value) if isinstance(value, str) else None
        write = f': write "{int(whole[1]):02}:00-{int(whole[2]):02}:00"' if whole else ""
        raise ConfigError(f'{where}: expected hours as "08:00-18:00", found {value!r:.80}{write}')
    h0, m0, h1, m1 = map(int, found.groups())
    begin, end = h0 * 60 + m0, h1 * 60 + m1
    if m0 > 59 or m1 > 59 or begin >= DAY_MINUTES or end > DAY_MINUTES or begin == end:  # noqa: PLR2004 a clock's
        raise ConfigError(f'{where}: {value!r} is not a time range: 00:00 to 24:00, such as "22:00-06:00"')
    return Hours(begin, end)
