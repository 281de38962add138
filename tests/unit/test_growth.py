"""Every reader of a user's text takes CPU in proportion to it: scripts, names, comments, submit lines, lists, options.

A new parser or regex that meets such a text gets its line in READERS.
"""

from collections.abc import Mapping
from typing import Final

import pytest
from tests.growth import BASE, SHAPES, Read, quadratic

from gpuwaste.core.cpu_budget import UNLIMITED
from gpuwaste.predict import texts

READERS: Final[Mapping[str, Read]] = {
    "script facts": lambda text: list(texts._facts(text, UNLIMITED)),
    "name facts": texts._name_facts,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reader", READERS)
def test_a_reader_is_linear(reader: str, shape: str) -> None:
    """Twice the text takes at most about twice the CPU, whatever it is made of."""
    assert quadratic(READERS[reader], SHAPES[shape]) == ""


def test_a_quadratic_reader_is_found() -> None:
    """The measure itself tells a reader that walks its text again for each character."""

    def walks_again(text: str) -> int:
        return sum(text.count("\n", place) for place in range(len(text)))

    assert "characters take" in quadratic(walks_again, SHAPES["newlines"])
    assert quadratic(str.splitlines, SHAPES["newlines"], 8 * BASE) == ""
