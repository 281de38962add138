"""The colours of the charts: told apart from the page in light, dark and print, and the same as look.md's levels."""

import re
from importlib.resources import files
from itertools import combinations
from typing import Final, get_args

import pytest

from gpuwaste.show.chart import Role
from gpuwaste.views.catalogue.waste import CAUSE_ROLES

CSS: Final = files("gpuwaste.show").joinpath("static", "charts.css").read_text(encoding="utf-8")
_TEXTS: Final = ("text", "muted")
_MARKS: Final = (
    *("high", "moderate", "low", "idle", "completed", "failed", "timeout", "out_of_memory", "cancelled", "node_fail"),
    *("other", "main", "second", "third", "muted"),
)


def tokens(begin: str) -> dict[str, str]:
    """Return the tokens of the first block of .chart after `begin`."""
    block = CSS[CSS.index(begin) :]
    found = re.search(r"\.chart \{(.*?)\}", block, re.DOTALL)
    assert found is not None
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", found[1]))


SCHEMES: Final = {
    "light": tokens("/* Colours"),
    "dark": tokens("@media (prefers-color-scheme: dark)"),
    "print": tokens("@media print"),
}


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_wcag() -> None:
    """Black on white is 21, and a grey that is known to fail is below 4.5."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_texts_and_marks_are_seen(scheme: str) -> None:
    """Texts have 4.5 on the page and the panel, marks 3 on the page."""
    found = SCHEMES[scheme]
    for name in _TEXTS:
        assert contrast(found[name], found["page"]) >= 4.5, name
        assert contrast(found[name], found["panel"]) >= 4.5, name
    for name in _MARKS:
        assert contrast(found[name], found["page"]) >= 3, name


def test_every_role_has_a_colour() -> None:
    """Each role that a series may have is one of the stylesheet's classes, and its token is in each scheme."""
    for role in get_args(Role):
        rule = re.search(rf"\.role-{role}(?:, [^{{]*)? \{{ --role: var\(--(\w+)\); \}}", CSS)
        assert rule is not None, role
        assert all(rule[1] in found for found in SCHEMES.values())


def test_paper_is_light() -> None:
    """Print has the light colours, whatever the screen has."""
    assert SCHEMES["print"] == SCHEMES["light"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_two_causes_have_nearly_the_same_colour(scheme: str) -> None:
    """The parts of one bar differ by at least 20 of 256 steps in each of red, green and blue, on average."""
    for one, other in combinations(CAUSE_ROLES.values(), 2):
        parts = ([int(SCHEMES[scheme][role][place : place + 2], 16) for place in (1, 3, 5)] for role in (one, other))
        assert sum(abs(a - b) for a, b in zip(*parts, strict=True)) >= 60, (one, other)
