"""A trouble that lasts is logged once."""

from gpuwaste.core.repeat_suppressor import RepeatSuppressor


def test_the_same_words_are_said_once_until_it_is_over() -> None:
    """Other words are news, and so are the same ones after the end, which tells how often the trouble came."""
    repeats = RepeatSuppressor()
    assert [repeats.news(words) for words in ("a", "a", "b", "b", "a")] == [True, False, True, False, True]
    assert (repeats.words, repeats.times) == ("a", 5)
    assert (repeats.over(), repeats.over(), repeats.words) == (5, 0, "")
    assert repeats.news("a")


def test_a_trouble_without_words_is_one_too() -> None:
    """The first is said though its words are empty."""
    repeats = RepeatSuppressor()
    assert [repeats.news(""), repeats.news("")] == [True, False]


def test_the_same_words_are_said_again_after_the_quiet_time() -> None:
    """What was left out in between is counted, and the count begins anew."""
    repeats = RepeatSuppressor()
    assert [repeats.news("a", now, 10) for now in (5, 9, 14, 15, 16)] == [True, False, False, True, False]
    assert repeats.repeats == 1
