"""Ticks: round values, times of a zone at the edges of summer time and of years, logarithms with zeros."""

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.show.charts.scale import EdgeScale, Linear, LogScale, Scale
from gpuwaste.show.charts.time_axis import Time

BERLIN = ZoneInfo("Europe/Berlin")


def at(*parts: int, zone: ZoneInfo = BERLIN) -> float:
    return datetime(*parts, tzinfo=zone).timestamp()  # type: ignore[misc,arg-type]


def texts(scale: Scale, most: int) -> list[str]:
    return [tick.text for tick in scale.ticks(most)]


@pytest.mark.parametrize(
    ("low", "high", "unit", "expected"),
    [
        (0, 100, "%", ["0", "20", "40", "60", "80", "100"]),
        (0, 0.3, "", ["0", "0.1", "0.2", "0.3"]),
        (-40, 60, "", ["-40", "-20", "0", "20", "40", "60"]),
        (0, 1_250_000, "", ["0", "500 k", "1 M"]),
        (0, 7200, "s", ["0", "30 min", "1 h", "90 min", "2 h"]),
        (0, 259_200, "s", ["0", "1 d", "2 d", "3 d"]),
        (0, 1, "jobs", ["0", "1"]),
        (0, 1, "GPU-hours", ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (5, 5, "", ["5"]),
    ],
)
def test_linear_ticks_are_round(low: float, high: float, unit: str, expected: list[str]) -> None:
    """Steps are 1, 2 or 5 times a power of ten, for jobs whole numbers; durations have those of a clock."""
    assert texts(Linear(low, high, unit), 5 if unit != "s" else 4) == expected


def test_log_ticks_have_a_place_for_zero() -> None:
    """A zero is at the start with a tick of its own, below the smallest value above it."""
    scale = LogScale.of([0, 1, 1000], "")
    assert texts(scale, 5) == ["0", "1", "10", "100", "1,000"]
    assert scale.at(0) == scale.at(-5) == 0
    assert 0 < scale.at(1) < scale.at(10) < scale.at(1000) == 1


def test_log_ticks_of_durations_are_those_of_a_clock() -> None:
    """Seconds over many decades are named in minutes, hours and days."""
    assert texts(LogScale.of([1, 90_000], "s"), 8) == ["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d"]


@settings(max_examples=examples(300))
@given(
    low=st.floats(-1e90, 1e90),
    span=st.floats(1e-9, 1e90),
    most=st.integers(1, 12),
    unit=st.sampled_from(["", "s"]),
)
def test_ticks_are_few_in_order_and_inside(low: float, span: float, most: int, unit: str) -> None:
    """Whatever the range: bounded, rising, and between the ends."""
    high = low + span
    scales: list[Scale] = [Linear(low, high, unit), LogScale.of([low, high], unit), Time(low, high, BERLIN)]
    for scale in scales:
        values = [tick.value for tick in scale.ticks(most)]
        assert len(values) <= 4 * most + 2
        assert values == sorted(values)
        assert all(0 <= scale.at(value) <= 1 for value in values)


@pytest.mark.parametrize(("day", "hours"), [((2026, 3, 29), 23), ((2026, 10, 25), 25), ((2026, 6, 1), 24)])
def test_day_ticks_are_midnights_of_the_zone(day: tuple[int, int, int], hours: int) -> None:
    """Around a change of summer time the ticks stay at midnight, so that a day has 23 or 25 hours."""
    begin = at(*day)
    ticks = Time(begin, begin + 3 * 86400, BERLIN).ticks(4)
    assert (ticks[1].value - ticks[0].value) / 3600 == hours
    assert all(datetime.fromtimestamp(tick.value, BERLIN).hour == 0 for tick in ticks)


def test_an_hour_that_a_clock_shows_twice_has_one_tick() -> None:
    """On the day that has 25 hours the ticks of hours rise, and none is repeated."""
    begin = at(2026, 10, 25)
    ticks = Time(begin, begin + 6 * 3600, BERLIN).ticks(8)
    assert [tick.text for tick in ticks] == ["25 Oct", "01:00", "02:00", "03:00", "04:00", "05:00"]
    assert [tick.value - begin for tick in ticks] == [0, 3600, 7200, 14400, 18000, 21600]


def test_an_hour_that_a_clock_leaves_out_has_no_tick_of_its_own() -> None:
    """On the day that has 23 hours 02:00 and 03:00 are one instant, and there is one tick for it."""
    begin = at(2026, 3, 29)
    ticks = Time(begin, begin + 4 * 3600, BERLIN).ticks(5)
    assert [tick.value - begin for tick in ticks] == [0, 3600, 7200, 10800, 14400]
    assert [tick.text for tick in ticks][2] == "03:00"


def test_the_first_tick_of_a_year_has_the_year() -> None:
    """Days, months and years over New Year: the year is named where it begins."""
    utc = ZoneInfo("UTC")
    days = Time(at(2025, 12, 30, zone=utc), at(2026, 1, 3, zone=utc), UTC)
    assert texts(days, 5) == ["30 Dec 2025", "31 Dec", "1 Jan 2026", "2 Jan", "3 Jan"]
    months = Time(at(2025, 11, 1, zone=utc), at(2026, 3, 1, zone=utc), UTC)
    assert texts(months, 5) == ["Nov 2025", "Dec", "2026", "Feb", "Mar"]
    assert texts(Time(at(2019, 6, 1, zone=utc), at(2022, 6, 1, zone=utc), UTC), 4) == ["2020", "2021", "2022"]


def test_ticks_end_with_the_calendar() -> None:
    """An axis that goes on after the last year of the calendar has few ticks, and none there."""
    ticks = Time(252_936_755_200, 252_936_755_200 + 339_311_600, BERLIN).ticks(2)
    assert 0 < len(ticks) <= 3
    assert Time(9e12, 9.1e12, BERLIN).ticks(5) != []


def test_weeks_begin_on_monday() -> None:
    """Ticks of seven days are Mondays."""
    utc = ZoneInfo("UTC")
    ticks = Time(at(2026, 11, 1, zone=utc), at(2026, 12, 1, zone=utc), UTC).ticks(5)
    assert {datetime.fromtimestamp(tick.value, UTC).weekday() for tick in ticks} == {0}


def test_bins_are_of_one_size_and_a_value_is_inside_its_own() -> None:
    """Edges that are not alike make cells of one size; a value is placed by its part of the cell."""
    scale = EdgeScale([0, 1, 10, 1000], LogScale.of([0, 1, 10, 1000], ""))
    assert [scale.at(edge) for edge in (0, 1, 10, 1000)] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert scale.at(math.sqrt(10)) == pytest.approx(0.5)
    assert scale.at(-1) == 0
    assert scale.at(10**9) == 1
