"""Times on the command line, as sacct reads them, in the caller's zone."""

import argparse
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from gpuwaste.core.errors import UsageError

_UNITS: Final = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_LONGEST: Final = 40  # characters; every form is shorter
_EPOCH: Final = re.compile(r"(?:@|uts)(\d{1,12})")
_NOW: Final = re.compile(r"now(?: *([+-]) *(\d{1,9}) *([a-z]*))?", re.IGNORECASE)
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))? *(am|pm)?", re.IGNORECASE)
_DATE: Final = re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})")
_MONTH: Final = re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII)
_SLASHED: Final = re.compile(r"(?P<month>\d{1,2})[/.](?P<day>\d{1,2})(?:[/.](?P<year>\d{4}|\d{2}))?")
_DIGITS: Final = re.compile(r"(?P<month>\d{2})(?P<day>\d{2})(?P<year>\d{2})?")
_HOURS: Final = {"midnight": 0, "elevenses": 11, "noon": 12, "fika": 15, "teatime": 16}
_DAYS: Final = {"today": 0, "yesterday": -1, "tomorrow": 1}
_WORD: Final = re.compile("|".join((*_HOURS, *_DAYS)), re.IGNORECASE)
_CENTURY: Final = 2000
_NOON: Final = 12

Clock = tuple[int, int, int]


def parse_time(text: str, now: datetime | None = None) -> int:
    """Return UTC seconds of a time as `sacct -S` takes it.

    `now` is naive local time, or in the zone that counts (default: the caller's). A date (YYYY-MM-DD, MM/DD[/YY],
    MMDD[YY], today) and a clock time (HH:MM[:SS] [AM|PM], noon) may follow each other after a T, a blank or a hyphen;
    uts1700000000 and @1700000000 are UTC seconds. Raises UsageError.
    """
    now = now or datetime.now()  # noqa: DTZ005 the caller's own zone is meant
    try:
        return int(_parse(text.strip(), now).timestamp())
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"time {text[:40]!r}: expected YYYY-MM-DD[THH:MM[:SS]], MM/DD[/YY], HH:MM[:SS], today, yesterday or "
            "now-7days"
        ) from None


def window_of(start: str, end: str) -> tuple[int, int]:
    """Return the UTC seconds of -S and -E. Raises UsageError where the one is not before the other."""
    found = parse_time(start), parse_time(end)
    if found[0] >= found[1]:
        raise UsageError(f"-S {start} is not before -E {end}")
    return found


class MonthAction(argparse.Action):
    """--month YYYY-MM: -S and -E of a calendar month in the caller's zone; the end of the current one is now."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Set the times; a text that is no month ends the command."""
        text = str(values)
        found = _MONTH.fullmatch(text)
        if found is None:
            parser.error(f"argument {option_string}: {text[:_LONGEST]!r}: expected YYYY-MM")
        year, month = int(found[1]), int(found[2])
        namespace.starttime = f"{year:04d}-{month:02d}-01"
        after = f"{year + month // 12:04d}-{month % 12 + 1:02d}-01"
        namespace.endtime = after if datetime.fromisoformat(after) <= datetime.now() else "now"  # noqa: DTZ005 own zone


def query_of(start: str | None, end: str) -> dict[str, int]:
    """Return the hub's parameters of a window: the hub sets an end of now and a default begin.

    Raises UsageError.
    """
    if start is None:
        return {} if end == "now" else {"end": parse_time(end)}
    first, last = window_of(start, end)
    return {"start": first} if end == "now" else {"start": first, "end": last}


def _parse(text: str, now: datetime) -> datetime:
    if found := _EPOCH.fullmatch(text):
        return datetime.fromtimestamp(int(found[1]), now.tzinfo)
    if len(text) > _LONGEST:
        raise ValueError(text)
    day, clock, rest = None, None, text
    while rest:
        found_day, found_clock, rest = _next(rest, now)
        day, clock = found_day or day, found_clock or clock
    if day is None and clock is None:
        raise ValueError(text)
    hour, minute, second = clock or (0, 0, 0)
    return (day or now).replace(hour=hour, minute=minute, second=second, microsecond=0)


def _next(text: str, now: datetime) -> tuple[datetime | None, Clock | None, str]:
    """Return the day and the clock time that the text begins with, and what follows."""
    if found := _NOW.match(text):
        then = now + _shift(*found.groups(default=""))
        return then, (then.hour, then.minute, then.second), text[found.end() :]
    if found := _WORD.match(text):
        word = found[0].lower()
        day = now + timedelta(days=_DAYS[word]) if word in _DAYS else None
        return day, None if day else (_HOURS[word], 0, 0), text[found.end() :]
    if found := _CLOCK.match(text):
        return None, _clock(*found.groups(default="")), text[found.end() :]
    if found := _DATE.match(text) or _SLASHED.match(text) or _DIGITS.match(text):
        return _day(now, **found.groupdict()), None, text[found.end() :]
    if text[0] in " \tT-":
        return None, None, text[1:]
    raise ValueError(text)


def _shift(sign: str, count: str, unit: str) -> timedelta:
    if not count:
        return timedelta()
    names = [name for name in _UNITS if name.startswith(unit.lower().removesuffix("s") or "second")]
    if not names:
        raise ValueError(unit)
    return int(count) * _UNITS[names[0]] * (-1 if sign == "-" else 1)


def _clock(hour: str, minute: str, second: str, half: str) -> Clock:
    if half and int(hour) > _NOON:
        raise ValueError(hour)
    hours = int(hour) % _NOON + _NOON * (half.lower() == "pm") if half else int(hour)
    return hours, int(minute), int(second or 0)


def _day(now: datetime, year: str | None, month: str, day: str) -> datetime:
    """Return the day; without a year it is of the last twelve months, to the month."""
    century = _CENTURY if year and len(year) == len("YY") else 0
    years = century + int(year) if year else now.year - (int(month) > now.month)
    return now.replace(year=years, month=int(month), day=int(day))


def parse_seconds(text: str) -> float:
    """Read a duration with a unit: 120s, 5m, 1h; seconds without. Raises UsageError."""
    found = re.fullmatch(r"(\d{1,6})([smh]?)", text.strip())
    if not found:
        raise UsageError(f"duration {text[:20]!r}: expected 120s, 5m or 1h")
    return int(found[1]) * {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}[found[2]]
