"""Numbers and times as the pages print them."""

import re
from html import unescape

import pytest

from gpuwaste.show.page_words import cut, duration, gpu_hours, in_gpu_hours, share, unbroken, utc


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (8040, "2 h 14 min"), (7200, "2 h"),
     (86_400, "1 d"), (90_000, "1 d 1 h"), (None, "unknown")],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(seconds: float | None, expected: str) -> None:
    """As one says it; what is unknown is no number."""
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(0, 1, "0 %"), (0.001, 1, "<1 %"), (0.4, 1, "40 %"), (0.999, 1, ">99 %"), (1, 1, "100 %"), (1, 0, "unknown"),
     (None, 1, "unknown")],
)  # fmt: skip
def test_a_share_is_0_or_100_only_where_it_is_none_or_all(part: float | None, whole: float, expected: str) -> None:
    """A little is not nothing, and almost all is not all."""
    assert share(part, whole) == expected


def test_gpu_hours_have_one_decimal_and_below_an_hour_two() -> None:
    """With a separator between thousands and no last 0 below an hour: 0.09 of 0.16 is 57 %; a little is not nothing."""
    assert (gpu_hours(0), gpu_hours(3600 * 1234.56), gpu_hours(None)) == ("0", "1,235", "unknown")
    assert [gpu_hours(seconds) for seconds in (1, 18, 324, 360, 576, 1800, 3582, 3600)] == [
        "<0.01", "0.01", "0.09", "0.1", "0.16", "0.5", "1.0", "1.0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kept"),
    [("48 % of it", ["48 %"]), ("2 h 14 min later", ["2 h 14 min"]), ("Held, GPU-hours", ["GPU-hours"]),
     ("1,234.5 GPU-hours, <0.1 % and 3-4 GPUs", ["1,234.5 GPU-hours", "&lt;0.1 %", "3-4 GPUs"]),
     ("a-b 3 sweeps, h 5 of 4711 train", [])],
)  # fmt: skip
def test_a_number_and_its_unit_stay_on_one_line(text: str, kept: list[str]) -> None:
    """They are in a span that does not wrap; the words are the same, and markup in them stays text."""
    found = str(unbroken(f"<b> {text}"))
    assert re.findall(r'<span class="nowrap">(.*?)</span>', found) == kept
    assert unescape(re.sub(r"</?span[^>]*>", "", found)) == f"<b> {text}"


def test_gpu_hours_come_with_their_unit() -> None:
    """A minute is not 0.0 GPU-hours."""
    assert (in_gpu_hours(60), in_gpu_hours(0)) == ("0.02 GPU-hours", "0 GPU-hours")


def test_a_time_is_utc_for_programs_and_people() -> None:
    """The element's time and title are UTC; a time that no calendar has is unknown."""
    found = str(utc(1_700_000_000))
    assert found == (
        '<time datetime="2023-11-14T22:13:20Z" title="2023-11-14 22:13:20 UTC">2023-11-14 22:13 UTC</time>'
    )
    assert [utc(value) for value in (None, -1, 10**15)] == ["unknown"] * 3


def test_a_text_is_cut_with_a_mark() -> None:
    """It is never longer than asked for."""
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "ab…")
