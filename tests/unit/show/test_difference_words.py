"""Figures of differences as they are printed: signs, units, many hours, intervals that are not known."""

import pytest

from gpuwaste.sim.difference_words import interval_words, said, signed, signed_duration
from gpuwaste.sim.document import Delta


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (-90.0, "s", "-00:01:30"),
        (7200.0, "s", "+02:00:00"),
        (-0.1034, "share", "-10.3 points"),
        (-2.5, "h", "-2.5"),
        (558_472.8, "h", "+558,473"),
        (-27_953_522.0, "h", "-27,953,522"),
        (0.0, "", "+0.00"),
    ],
)
def test_a_difference_has_its_sign_and_unit(value: float, unit: str, text: str) -> None:
    """Seconds as durations, shares as points, many hours without decimals."""
    assert signed(value, unit) == text


def test_values_have_no_sign() -> None:
    """A value is printed plain, a share in percent."""
    assert (said(0.7, "share"), said(99_999.4, "h"), said(1.5, "")) == ("70 %", "99,999", "1.50")


def test_an_interval_that_is_not_known_is_a_dash() -> None:
    """Without enough weeks there is a dash, never 0; an interval of a share is in points."""
    assert interval_words(Delta(base=1, changed=2, difference=1), "s") == "-"
    assert interval_words(Delta(base=0.5, changed=0.6, difference=0.1, low=-0.02, high=0.2), "share") == (
        "-2.0 to +20.0 points"
    )


def test_a_sentence_has_durations_as_users_say_them() -> None:
    """The sign, and the two largest units; what rounds to zero is not negative."""
    assert [signed_duration(value) for value in (-4020.0, 45.0, -0.2)] == ["-1 h 7 min", "+45 s", "+0 s"]
