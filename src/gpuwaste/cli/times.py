"""Times on the command line, as sacct reads them, in the caller's zone."""

import re
from datetime import datetime, timedelta
from typing import Final

from gpuwaste.core.errors import UsageError

_UNITS: Final = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_NOW: Final = re.compile(r"now(?:([+-])(\d{1,9})([a-z]*))?")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_DATE: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_SLASHED: Final = re.compile(r"(\d{1,2})[/.](\d{1,2})(?:[/.](\d{2}|\d{4}))?")
_EPOCH: Final = re.compile(r"@(\d{1,12})")
_DIGITS: Final = re.compile(r"(\d{2})(\d{2})(\d{2})?")
_HOURS: Final = {"midnight": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16}
_DAYS: Final = {"today": 0, "yesterday": -1, "tomorrow": 1}
_CENTURY: Final = 2000


def parse_time(text: str, now: datetime) -> int:
    """Return UTC seconds of a time as `sacct -S` takes it; `now` is naive local time, or in the zone that counts.

    Dates (YYYY-MM-DD, MM/DD[/YY], MMDD[YY]) may be followed by T and a clock time; @N are UTC seconds, as date -d has
    them. Raises UsageError.
    """
    try:
        return int(_parse(text.strip(), now).timestamp())
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"time {text[:40]!r}: expected YYYY-MM-DD[THH:MM[:SS]], MM/DD[/YY], HH:MM[:SS], today, yesterday or "
            "now-7days"
        ) from None


def _parse(text: str, now: datetime) -> datetime:
    word = text.lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if found := _NOW.fullmatch(word):
        return now + _shift(*found.groups(default=""))
    if found := _EPOCH.fullmatch(word):
        return datetime.fromtimestamp(int(found[1]), now.tzinfo)
    if word in _DAYS:
        return midnight + timedelta(days=_DAYS[word])
    if word in _HOURS:
        return midnight.replace(hour=_HOURS[word])
    if found := _CLOCK.fullmatch(word):
        return _at(midnight, word)
    day, separator, clock = text.partition("T")
    return _at(_day(day, midnight), clock) if separator else _day(day, midnight)


def _shift(sign: str, count: str, unit: str) -> timedelta:
    if not count:
        return timedelta()
    names = [name for name in _UNITS if name.startswith(unit.removesuffix("s") or "second")]
    if not names:
        raise ValueError(unit)
    return int(count) * _UNITS[names[0]] * (-1 if sign == "-" else 1)


def _at(day: datetime, clock: str) -> datetime:
    found = _CLOCK.fullmatch(clock)
    if not found:
        raise ValueError(clock)
    return day.replace(hour=int(found[1]), minute=int(found[2]), second=int(found[3] or 0))


def _day(text: str, midnight: datetime) -> datetime:
    if found := _DATE.fullmatch(text):
        return midnight.replace(year=int(found[1]), month=int(found[2]), day=int(found[3]))
    found = _SLASHED.fullmatch(text) or _DIGITS.fullmatch(text)
    if not found:
        raise ValueError(text)
    year = int(found[3]) if found[3] else midnight.year
    return midnight.replace(
        year=year if year >= 100 else _CENTURY + year,  # noqa: PLR2004 two digits
        month=int(found[1]),
        day=int(found[2]),
    )


def parse_seconds(text: str) -> float:
    """Read a duration with a unit: 120s, 5m, 1h; seconds without. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,6})([smh]?)", text.strip())
    if not found:
        raise UsageError(f"duration {text[:20]!r}: expected 120s, 5m or 1h")
    return int(found[1]) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}[found[2]]
