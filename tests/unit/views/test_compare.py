"""Two windows side by side: a change is told from noise, and no change is called so."""

import random

import pytest
from msgspec.structs import replace
from tests.unit.views.sites import DAY, MONTH, viewed
from tests.unit.views.test_views import MONTH_LONG, busy

from gpuwaste.core.bootstrap import BootstrapSample, difference, estimate, interval
from gpuwaste.show.view_document import Fact
from gpuwaste.views.compare import UNTESTED, compare
from gpuwaste.views.view import Viewed


def test_a_real_change_is_more_than_noise_and_comes_first() -> None:
    """Waits nine times as long: median and 95th percentile rise beyond noise, and the first sentence says so."""
    found = compare(viewed(busy(), "waits", MONTH_LONG), viewed(busy(9), "waits", MONTH_LONG))
    changes = {change.id: change for change in found.changes}
    assert changes["wait_p50_s"].beyond_noise
    assert changes["wait_p95_s"].beyond_noise
    assert found.changes[0].beyond_noise
    assert " → " in found.narrative[0]
    assert found.narrative[0].endswith(", more than noise).")


def test_the_same_twice_is_no_change() -> None:
    """One window beside itself: no fact is beyond noise, every difference is 0, and the text says no change."""
    one = viewed(busy(), "states", MONTH_LONG)
    found = compare(one, one)
    assert not any(change.beyond_noise or change.difference for change in found.changes)
    assert found.narrative[0].startswith("No change")


def test_too_few_days_are_called_so() -> None:
    """Three days on each side: the largest change is the one sentence; that none was tested is said once."""
    before = viewed(busy(), "states", (MONTH, MONTH + 3 * DAY))
    after = viewed(busy(), "states", (MONTH + 3 * DAY, MONTH + 5 * DAY))
    found = compare(before, after)
    assert all(change.beyond_noise is None for change in found.changes)
    (headline,) = found.narrative
    assert headline.endswith("(too few days to test).")
    assert found.notes == [UNTESTED]


def test_what_is_not_known_does_not_lead() -> None:
    """Where noise cannot be told, the share of unknown GPU-hours comes last, though it moved more than the waste."""
    one = viewed(busy(), "states", (MONTH, MONTH + DAY))
    facts = {"wasted_share": (0.4, 0.5), "unknown_share": (0.01, 0.6)}
    sides = []
    for side in (0, 1):
        told = [Fact(id=i, value=v[side], text="", unit="share", means=i, query="waste") for i, v in facts.items()]
        sides.append(Viewed(replace(one.document, facts=told), {}))
    assert [change.id for change in compare(*sides).changes] == ["wasted_share", "unknown_share"]


def test_what_is_said_of_two_things_is_not_compared() -> None:
    """The share of the user who failed most, and the waits of the slowest group, may be of others on each side."""
    one = viewed(busy(), "states", MONTH_LONG)
    assert "top_user_share" in {fact.id for fact in one.document.facts}
    assert not {c.id for c in compare(one, one).changes} & {"top_user", "top_user_share", "top_user_failed"}
    waits = viewed(busy(), "waits", MONTH_LONG)
    assert {c.id for c in compare(waits, waits).changes} >= {"wait_p50_s", "wait_p95_s", "runs"}


def test_nothing_on_one_side_is_not_compared() -> None:
    """A window without jobs has no shares: they are left out, and nothing fails."""
    found = compare(viewed(busy(), "limits", (0, 10 * DAY)), viewed(busy(), "limits", MONTH_LONG))
    assert "used_share" not in {change.id for change in found.changes}


def test_noise_alone_seldom_looks_like_a_change() -> None:
    """Of 100 pairs of months from one distribution, at most 15 differ; of 100 with twice the rate, at least 95."""
    drawing = random.Random(7)

    def month(rate: float) -> BootstrapSample:
        days = [sum(drawing.random() < rate for _ in range(40)) for _ in range(30)]
        return BootstrapSample(blocks=[(failed, 40) for failed in days])

    def differs(one: BootstrapSample, other: BootstrapSample) -> bool:
        ends = difference(one, other)
        assert ends is not None
        return not ends[0] <= 0 <= ends[1]

    assert sum(differs(month(0.2), month(0.2)) for _ in range(100)) <= 15
    assert sum(differs(month(0.2), month(0.4)) for _ in range(100)) >= 95


@pytest.mark.parametrize("blocks", [[], [(0, 0)] * 10])
def test_nothing_has_no_interval(blocks: list[tuple[int, int]]) -> None:
    """Neither no days nor days with nothing give an interval."""
    sample = BootstrapSample(blocks=blocks)
    assert interval(sample, 0.5) is None
    assert difference(sample, sample) is None
    assert estimate(sample, [0, 0]) is None
