"""What other programs and users write can be stored, shown on a terminal and logged, and nothing of it is lost."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuwaste.core
from gpuwaste.core.text import LONGEST_CACHED, PLAIN_NAME, decoded, harmless, short_cache, storable, words_of


def test_bytes_that_are_no_utf_8_become_escapes() -> None:
    """The rest stays readable."""
    assert decoded(b"caf\xc3\xa9 \xff") == "caf\u00e9 \\xff"


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("train", "train"),
        ("a\0b", "a\\x00b"),
        ("\u00e9\0", "\u00e9\\x00"),
        ("a\udcff", "a\\xff"),
        ("a\ud800", "a\\ud800"),
        ("\udcc3\udca9", "\u00e9"),
    ],
)
def test_what_cannot_be_stored_becomes_an_escape(text: str, stored: str) -> None:
    """NUL, half a surrogate pair that JSON names, and bytes as Python decodes the system's: whole again where whole."""
    assert storable(text) == stored


@given(st.text(st.characters(codec=None), max_size=30))
def test_any_text_is_stored(text: str) -> None:
    """It is UTF-8 without NUL, and stays as it is the second time."""
    stored = storable(text)
    assert "\0" not in stored
    assert storable(stored.encode().decode()) == stored


@given(st.text(st.characters(codec=None), max_size=30))
def test_no_text_acts_on_a_terminal(text: str) -> None:
    """One line of printable characters; printable text is not touched."""
    shown = harmless(text)
    assert "\x1b" not in shown
    assert len(shown.splitlines()) <= 1
    assert harmless(shown) == shown


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"550 no \xff\r\n such   user\x1b[31m", "550 no \\xff such user [31m"),
        (ValueError("a\n b\u202e"), "a b"),
        ("", ""),
        ("x" * 100, "x" * 20),
    ],
)
def test_another_program_s_words_are_one_short_line(said: object, words: str) -> None:
    """Whatever they are, they do not break a log's line or fill it."""
    assert words_of(said, 20 if isinstance(said, str) else 100) == words


def test_the_pattern_of_names_stands_here_alone() -> None:
    """Rules, policies, models and ways have one pattern of a name."""
    root = Path(next(iter(gpuwaste.core.__path__))).parent
    files = [path.name for path in root.rglob("*.py") if PLAIN_NAME.pattern in path.read_text()]
    assert files == ["text.py"]
    assert PLAIN_NAME.fullmatch("gpu-idle_2.0")
    assert not any(map(PLAIN_NAME.fullmatch, ("", ".x", "-x", "a/b", "a\n", "x" * 65, "é")))


def test_short_texts_are_kept_and_long_ones_are_worked_out_again() -> None:
    """A text of LONGEST_CACHED characters is asked for once, a longer one each time, among other values too."""
    asked: list[tuple[object, ...]] = []

    @short_cache(8)
    def length(*values: object) -> int:
        asked.append(values)
        return len(str(values[0]))

    for _ in range(3):
        assert length("x" * LONGEST_CACHED, 7) == LONGEST_CACHED
        assert length("y" * (LONGEST_CACHED + 1), None) == LONGEST_CACHED + 1
        assert length("z", "w" * 4096) == 1
    assert len(asked) == 1 + 3 + 3


def test_what_is_kept_has_a_bound() -> None:
    """Of more values than it keeps, the oldest is worked out again."""
    asked: list[str] = []

    @short_cache(2)
    def twice(text: str) -> str:
        asked.append(text)
        return text + text

    assert [twice(text) for text in ("a", "b", "c", "a")] == ["aa", "bb", "cc", "aa"]
    assert asked == ["a", "b", "c", "a"]
