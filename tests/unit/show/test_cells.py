"""Cells: harmless names, display width, bars and durations."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.text import harmless
from gpuwaste.show.terminal_cells import bar, clock, fit, percent, short, width

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "two\nlines\r\ttabbed",
    "\u202eright to left",
    "zero\u200bwidth",
    "bell\x07 null\x00 del\x7f csi\x9b31m",
    "lone \ud800 surrogate",
    "\U0001f600" * 50,
    "\u6f22\u5b57" * 40,
    "e\u0301" * 100,
    "x" * 10_000,
    "\u0301" * 10_000,
    "\ufffe\U000e0001",
    "",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("columns", [1, 2, 9, 17, 40])
def test_a_hostile_name_fits_and_does_nothing(name: str, columns: int) -> None:
    """No control, format or surrogate character is left, and the width holds."""
    shown = fit(name, columns)
    assert width(shown) <= columns
    assert all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for c in shown)


@given(st.text(max_size=60), st.integers(1, 30))
def test_any_text_fits(name: str, columns: int) -> None:
    """Whatever the name, it is printable and as narrow as asked."""
    shown = fit(name, columns)
    assert width(shown) <= columns
    assert "\n" not in shown
    assert "\x1b" not in shown


def test_a_cut_is_marked() -> None:
    """What was cut ends in ~, what fits stands as it is, in any script."""
    assert fit("train", 5) == "train"
    assert fit("training", 5) == "trai~"
    assert fit("漢字漢字", 5) == "漢字~"
    assert harmless("漢字 naïve") == "漢字 naïve"


def test_a_bar_has_its_width_and_says_unknown() -> None:
    """A bar is as wide as asked at every ratio; unknown is a word and no empty bar."""
    for ratio in (0.0, 0.001, 0.48, 0.999, 1.0, 1.7):
        assert len(bar(ratio, 40)) == 40
    assert bar(0.48, 24) == "[|||||||||||       48 %]"
    assert bar(None, 24) == "[               unknown]"
    assert bar(0.0, 24) == "[                   0 %]"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, "-"), (0, "0 %"), (0.001, "<1 %"), (0.48, "48 %"), (0.999, ">99 %"), (1, "100 %"), (1.5, "150 %")],
)
def test_percent_never_rounds_to_nothing_or_all(ratio: float | None, text: str) -> None:
    """A little is <1 %, almost all is >99 %, unknown is a dash."""
    assert percent(ratio) == text


@pytest.mark.parametrize(
    ("seconds", "in_a_table", "in_a_sentence"),
    [
        (None, "-", "-"),
        (0, "00:00:00", "0 s"),
        (119, "00:01:59", "1 min 59 s"),
        (600, "00:10:00", "10 min"),
        (7200, "02:00:00", "2 h"),
        (93784, "1-02:03:04", "1 d 2 h"),
    ],
)
def test_durations_are_slurm_s_in_tables_and_words_in_sentences(
    seconds: float | None, in_a_table: str, in_a_sentence: str
) -> None:
    """A table has 1-02:03:04 as squeue prints it, a sentence the two largest units."""
    assert clock(seconds) == in_a_table
    assert short(seconds) == in_a_sentence
