"""Time on an axis: ticks at midnights, months and years of a zone, correct across daylight saving changes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S
from gpuwaste.show.charts.scale import Tick

_EARLIEST: Final = -62_000_000_000.0
_LATEST: Final = 253_000_000_000.0
_MONTH_S: Final = 31 * DAY_S
_YEAR_S: Final = 366 * DAY_S
_STEPS: Final = (
    *((MINUTE_S * count, "minute", count) for count in (1, 5, 15, 30)),
    *((HOUR_S * count, "minute", 60 * count) for count in (1, 3, 6, 12)),
    *((DAY_S * count, "day", count) for count in (1, 2, 7, 14)),
    *((_MONTH_S * count, "month", count) for count in (1, 3, 6)),
    *((_YEAR_S * count, "month", 12 * count) for count in (1, 2, 5, 10, 50, 100, 500, 1000, 5000)),
)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def local(utc_s: float, zone: tzinfo) -> datetime:
    """Return an instant in a zone; values outside the calendar become its first or last instant."""
    return datetime.fromtimestamp(min(_LATEST, max(_EARLIEST, utc_s)), UTC).astimezone(zone)


def zone_name(zone: tzinfo) -> str:
    """Return the name of a zone: UTC, Europe/Berlin."""
    return str(zone)


def time_words(utc_s: float, zone: tzinfo, day_alone: bool = False) -> str:
    """Print an instant: Sun 22 Nov 2026 14:05; only the day with `day_alone`."""
    found = local(utc_s, zone)
    day = f"{_DAYS[found.weekday()]} {_day(found.date(), year=True)}"
    return day if day_alone else f"{day} {found:%H:%M}"


@dataclass(frozen=True, slots=True)
class Time:
    """UTC seconds, labelled in a zone."""

    low: float
    high: float
    zone: tzinfo

    def at(self, value: float) -> float:
        """Return the position of an instant; instants outside are at the end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low))) if self.high > self.low else 0.5

    def ticks(self, most: int) -> list[Tick]:
        """Return ticks at round times of the zone; the first of each year has the year."""
        low, high = max(_EARLIEST, self.low), min(_LATEST, self.high)
        if high <= low:
            return [Tick(self.low, time_words(self.low, self.zone))]
        span = high - low
        unit, count = next(
            ((unit, count) for step_s, unit, count in _STEPS if span / step_s <= most), ("month", 12 * 5000)
        )
        begin = local(low, self.zone).date()
        instants = _minutes(begin, high, count, self.zone) if unit == "minute" else self._dates(begin, unit, count)
        found, before = [], None
        for instant in instants:
            if low <= instant <= high:
                found.append(Tick(instant, _words(local(instant, self.zone), before, unit)))
                before = local(instant, self.zone)
        return found

    def _dates(self, begin: date, unit: str, count: int) -> Iterator[float]:
        for day in _days(begin, count) if unit == "day" else _month_starts(begin, count):
            instant = datetime(day.year, day.month, day.day, tzinfo=self.zone).timestamp()
            if instant > self.high:
                return
            yield instant


def _minutes(begin: date, high: float, count: int, zone: tzinfo) -> Iterator[float]:
    """Yield the times of day in the zone; an hour repeated by daylight saving is yielded once."""
    last = -float("inf")
    for days in range(32):
        midnight = datetime(begin.year, begin.month, begin.day, tzinfo=UTC) + timedelta(days=days)
        for minute in range(0, 1440, count):
            instant = (midnight + timedelta(minutes=minute)).replace(tzinfo=zone).timestamp()
            if instant > high:
                return
            if instant > last:
                yield instant
                last = instant


def _days(begin: date, count: int) -> Iterator[date]:
    ordinal = begin.toordinal()
    ordinal += -(ordinal - 1) % count if count > 1 else 0  # weeks begin on Monday: ordinal 1 is one
    while ordinal <= date.max.toordinal():
        yield date.fromordinal(ordinal)
        ordinal += count


def _month_starts(begin: date, count: int) -> Iterator[date]:
    month = begin.year * 12 + begin.month - 1
    month += -month % count
    while month < 10_000 * 12:
        yield date(month // 12, month % 12 + 1, 1)
        month += count


def _words(moment: datetime, before: datetime | None, unit: str) -> str:
    day = moment.date()
    year = before is None or before.year != day.year
    if unit == "month":
        short = str(day.year) if day.month == 1 else _MONTHS[day.month - 1]
        return f"{_MONTHS[day.month - 1]} {day.year}" if year and day.month != 1 else short
    if unit == "day":
        return _day(day, year=year)
    if before is not None and before.date() == day:
        return f"{moment:%H:%M}"
    return _day(day, year=False) + ("" if (moment.hour, moment.minute) == (0, 0) else f" {moment:%H:%M}")


def _day(day: date, *, year: bool) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]}" + (f" {day.year}" if year else "")
