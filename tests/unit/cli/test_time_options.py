"""Times as sacct reads them, in the caller's zone."""

import argparse
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from gpuwaste.cli.time_options import MonthAction, parse_seconds, parse_time
from gpuwaste.core.errors import UsageError

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2025, 6, 20, 14, 30, 15, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("now", (2025, 6, 20, 14, 30, 15)),
        ("now-7days", (2025, 6, 13, 14, 30, 15)),
        ("now-1hour", (2025, 6, 20, 13, 30, 15)),
        ("now-90", (2025, 6, 20, 14, 28, 45)),
        ("now+2weeks", (2025, 7, 4, 14, 30, 15)),
        ("today", (2025, 6, 20, 0, 0, 0)),
        ("midnight", (2025, 6, 20, 0, 0, 0)),
        ("noon", (2025, 6, 20, 12, 0, 0)),
        ("yesterday", (2025, 6, 19, 0, 0, 0)),
        ("2025-06-01", (2025, 6, 1, 0, 0, 0)),
        ("2025-06-01T08:30", (2025, 6, 1, 8, 30, 0)),
        ("2025-01-01T08:30:59", (2025, 1, 1, 8, 30, 59)),
        ("06/01", (2025, 6, 1, 0, 0, 0)),
        ("06/01/24", (2024, 6, 1, 0, 0, 0)),
        ("060124", (2024, 6, 1, 0, 0, 0)),
        ("08:15", (2025, 6, 20, 8, 15, 0)),
        ("8:15PM", (2025, 6, 20, 20, 15, 0)),
        ("12:10 am", (2025, 6, 20, 0, 10, 0)),
        ("noon yesterday", (2025, 6, 19, 12, 0, 0)),
        ("06/01/25-08:15", (2025, 6, 1, 8, 15, 0)),
        ("12/31", (2024, 12, 31, 0, 0, 0)),
        ("now-7d", (2025, 6, 13, 14, 30, 15)),
    ],
)
def test_a_time_is_the_callers_local_time(text: str, local: tuple[int, int, int, int, int, int]) -> None:
    """Each form gives the instant that the caller's wall clock means, summer or winter."""
    assert parse_time(text, NOW) == int(datetime(*local, tzinfo=ZONE).timestamp())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "never",
        "2025-13-01",
        "now-7parsecs",
        "25:00",
        "99/99",
        "now-999999999weeks",
        "T",
        "13:00PM",
        "noon x",
        "today" * 20,
    ],
)
def test_a_wrong_time_is_a_usage_error(text: str) -> None:
    """What is no time is named, with the forms that are."""
    with pytest.raises(UsageError, match="now-7days"):
        parse_time(text, NOW)


def test_seconds_have_units() -> None:
    """120s, 5m and 1h are read; a number alone is seconds."""
    assert [parse_seconds(t) for t in ("120s", "5m", "1h", "30")] == [120, 300, 3600, 30]
    with pytest.raises(UsageError):
        parse_seconds("soon")


def test_a_month_is_two_times(capsys: pytest.CaptureFixture[str]) -> None:
    """--month is the first of it until the first of the next one, the current one until now; others are refused."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--month", action=MonthAction)
    parser.set_defaults(starttime=None, endtime="now")
    assert vars(parser.parse_args(["--month", "2024-12"])) | {"month": None} == {
        "month": None, "starttime": "2024-12-01", "endtime": "2025-01-01",
    }  # fmt: skip
    assert parser.parse_args(["--month", f"{datetime.now():%Y-%m}"]).endtime == "now"  # noqa: DTZ005 the caller's zone
    for text in ("2024-13", "2024-1", "October", "2024-10-01", "٢٠٢٤-10"):
        with pytest.raises(SystemExit):
            parser.parse_args(["--month", text])
    assert "expected YYYY-MM" in capsys.readouterr().err
