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


@pytest.mark.parametrize(
    ("some", "sentence"), [(3.0, "Half waited 5 min; 3 waited long."), (0.0, "Half waited 5 min.")]
)
def test_a_part_of_nothing_is_left_out(some: float, sentence: str) -> None:
    """Where no job waited long, or it is not known, the rest of the sentence stays."""
    p50 = Fact(id="p50", means="", value=300.0, unit="s", text="5 min", query="")
    long = Fact(id="long", means="", value=some, unit="", text=f"{some:.0f}", query="")
    rule = ["Half waited {p50}[; {long+} waited long]."]
    assert narrate(rule, [p50, long]) == [sentence]
    assert narrate(rule, [p50]) == ["Half waited 5 min."]
