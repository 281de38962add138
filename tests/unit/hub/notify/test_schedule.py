"""When periods end: whole hours of a site's own days, over changes of its clocks; quiet hours."""

from datetime import datetime, time
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from gpuwaste.act.notify.notify_settings import Schedule, read_zone
from gpuwaste.core.errors import ConfigError

EIGHT = time(8)
BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> int:
    """Return UTC seconds of a time in Berlin."""
    return int(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp())


def test_a_week_ends_on_its_day() -> None:
    """On Monday at eight the week ends, a second before it is the week before that was the last."""
    weekly = Schedule(EIGHT, 0, BERLIN)
    assert weekly.period(at("2026-11-16T08:00")) == (at("2026-11-09T08:00"), at("2026-11-16T08:00"))
    assert weekly.last_end(at("2026-11-16T08:00") - 1) == at("2026-11-09T08:00")
    assert weekly.last_end(at("2026-11-22T23:59")) == at("2026-11-16T08:00")


def test_clocks_change() -> None:
    """The period over a change of the clocks has an hour more or less, and still ends at eight."""
    daily = Schedule(EIGHT, None, BERLIN)
    start, end = daily.period(at("2026-10-25T12:00"))
    assert (end, end - start) == (at("2026-10-25T08:00"), 25 * 3600)
    start, end = daily.period(at("2026-03-29T12:00"))
    assert (end, end - start) == (at("2026-03-29T08:00"), 23 * 3600)


def test_the_periods_of_a_time() -> None:
    """All periods that ended in a month, none twice, none left out."""
    weekly = Schedule(EIGHT, 0, BERLIN)
    found = weekly.periods(at("2026-11-01T00:00"), at("2026-11-30T08:00"))
    assert [end for _, end in found] == [at(f"2026-11-{day:02d}T08:00") for day in (2, 9, 16, 23, 30)]
    assert all(a[1] == b[0] for a, b in pairwise(found))


def test_the_host_s_own_zone() -> None:
    """Without a zone the host's clock counts."""
    end = Schedule(EIGHT).last_end(at("2026-11-16T12:00"))
    assert datetime.fromtimestamp(end).hour == 8  # noqa: DTZ006 the host's own zone is meant


def test_an_unknown_zone_is_refused() -> None:
    """A zone that the host does not know is an error, and none is the host's."""
    with pytest.raises(ConfigError, match="unknown time zone"):
        read_zone("Mars/Olympus")
    with pytest.raises(ConfigError, match="unknown time zone"):
        read_zone("../../etc/passwd")
    assert read_zone("") is None
