"""Instants and processor times as Slurm prints them."""

from zoneinfo import ZoneInfo

import pytest

from gpuwaste.core.errors import ParseError, UsageError
from gpuwaste.slurm.formats.slurm_times import format_time, parse_cpu_s, parse_interval_s, parse_time_s, zone_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1700000000", 1700000000), ("2023-11-14T22:13:20", 1700000000), ("Unknown", None), ("None", None), ("0", None)],
)
def test_reads_instants(text: str, seconds: int | None) -> None:
    """Epoch seconds and UTC text are the same instant; words and 0 are none."""
    assert parse_time_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:01.234", 1.234), ("01:02:03.456", 3723.456), ("1-02:03:04", 93784.0), ("00:00:00", 0.0), ("", None)],
)
def test_reads_processor_times(text: str, seconds: float | None) -> None:
    """Minutes come first where there are two numbers, days where there is a dash."""
    assert parse_cpu_s(text) == seconds


def test_writes_what_it_reads() -> None:
    """The form of --starttime."""
    assert format_time(1700000000) == "2023-11-14T22:13:20"


@pytest.mark.parametrize("text", ["yesterday", "2023-13-01T00:00:00", "9" * 40, "-5", "1:2:3:4", "14 Nov 22:13"])
def test_refuses_other_text(text: str) -> None:
    """Another locale's or format's time is a ParseError."""
    with pytest.raises(ParseError):
        parse_time_s(text)
    with pytest.raises(ParseError):
        parse_cpu_s(text)


OSLO = ZoneInfo("Europe/Oslo")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-07-01T12:00:00", 1719828000),
        ("2024-07-01T12:00:00+00:00", 1719835200),
        ("2024-07-01T12:00:00-0200", 1719842400),
        ("2024-07-01T12:00:00Z", 1719835200),
        ("1719828000", 1719828000),
        ("Unknown", None),
    ],
)
def test_dates_are_in_their_zone_unless_they_say_another(text: str, expected: int | None) -> None:
    """A site's local dates, dates with an offset, and epoch seconds."""
    assert parse_time_s(text, OSLO) == expected


@pytest.mark.parametrize(
    ("start", "end", "length", "seconds"),
    [
        ("01:30:00", "02:30:00", 3600, 3600),  # the first 02:30
        ("01:30:00", "02:30:00", 7200, 7200),  # the second 02:30
        ("02:30:00", "03:30:00", 3600, 3600),  # from the second 02:30
        ("02:30:00", "03:30:00", 7200, 7200),
        ("02:10:00", "02:50:00", 2400, 2400),
        ("02:50:00", "02:10:00", 1200, 1200),  # across the turn: 02:50 summer time to 02:10 winter time
        ("02:30:00", "03:30:00", None, 7200),  # not known: the earlier instants
        ("01:00:00", "04:00:00", 99, 14400),
    ],
)
def test_the_length_settles_the_hour_that_comes_twice(start: str, end: str, length: int | None, seconds: int) -> None:
    """On the night when clocks are set back, elapsed time tells which of the two instants is meant."""
    day = "2024-10-27T"
    begun, ended = parse_interval_s(day + start, day + end, length, OSLO)
    assert begun is not None
    assert ended is not None
    assert ended - begun == seconds


def test_an_unknown_zone_is_refused() -> None:
    """The name is in the line."""
    with pytest.raises(UsageError, match="Mars/Base"):
        zone_of("Mars/Base")
    with pytest.raises(UsageError, match=r"\.\./"):
        zone_of("../etc/passwd")
