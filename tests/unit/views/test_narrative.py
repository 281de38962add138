"""Sentences by rules: a part in brackets is left out where it repeats a text."""

import pytest

from gpuwaste.show.view_document import Fact
from gpuwaste.views.narrative import narrate

_WAITS = "Half waited {p50} or less[; one in twenty waited longer than {p95}]."


@pytest.mark.parametrize(
    ("p95", "sentence"),
    [
        ("9 min", "Half waited 5 min or less; one in twenty waited longer than 9 min."),
        ("5 min", "Half waited 5 min or less."),
    ],
)
def test_a_part_with_the_text_of_the_fact_before_it_is_left_out(p95: str, sentence: str) -> None:
    """A 95th percentile that is printed as the median is, is not printed."""
    facts = [
        Fact(id=name, means="", value=300.0, unit="s", text=text, query="")
        for name, text in (("p50", "5 min"), ("p95", p95))
    ]
    assert narrate([_WAITS], facts) == [sentence]
