"""The cache that keeps short texts alone."""

from gpuwaste.core.short_cache import LONGEST, short_cache


def test_short_texts_are_kept_and_long_ones_are_worked_out_again() -> None:
    """A text of LONGEST characters is asked for once, a longer one each time, among other values too."""
    asked: list[tuple[object, ...]] = []

    @short_cache(8)
    def length(*values: object) -> int:
        asked.append(values)
        return len(str(values[0]))

    for _ in range(3):
        assert length("x" * LONGEST, 7) == LONGEST
        assert length("y" * (LONGEST + 1), None) == LONGEST + 1
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
