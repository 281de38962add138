"""A trouble that lasts is said once; waits after failures double up to their bound."""

import pytest

from gpuwaste.core.backoff import backoff_s
from gpuwaste.core.once import Once


def test_the_same_words_are_said_once_until_it_is_over() -> None:
    """Other words are news, and so are the same ones after the end, which tells how often the trouble came."""
    once = Once()
    assert [once.news(words) for words in ("a", "a", "b", "b", "a")] == [True, False, True, False, True]
    assert (once.words, once.times) == ("a", 5)
    assert (once.over(), once.over(), once.words) == (5, 0, "")
    assert once.news("a")


def test_a_trouble_without_words_is_one_too() -> None:
    """The first is said though its words are empty."""
    once = Once()
    assert [once.news(""), once.news("")] == [True, False]


def test_the_same_words_are_said_again_after_the_quiet_time() -> None:
    """What was left out in between is counted, and the count begins anew."""
    once = Once()
    assert [once.news("a", now, 10) for now in (5, 9, 14, 15, 16)] == [True, False, False, True, False]
    assert once.repeats == 1


@pytest.mark.parametrize(("failures", "wait_s"), [(0, 5.0), (1, 5.0), (2, 10.0), (4, 40.0), (7, 300.0), (10**6, 300.0)])
def test_waits_double_up_to_a_bound(failures: int, wait_s: float) -> None:
    """From the first wait on, and however many failures there are."""
    assert backoff_s(failures, 5.0, 300.0) == wait_s
