"""Instants and processor times as Slurm prints them."""

import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.times import format_time, parse_cpu_s, parse_time_s


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
