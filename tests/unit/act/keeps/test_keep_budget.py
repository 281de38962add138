"""The budget of keeps: hours over all runs and orders in seven days, and the longest one."""

import pytest

from gpuwaste.act.keeps.keep_budget import KeepBudget, KeepsSpent

BUDGET = KeepBudget(hours_per_week=24.0, max_hours=12.0, keeps_per_week=3)


@pytest.mark.parametrize(
    ("spent", "cost_s", "runs", "words"),
    [
        (KeepsSpent(), 4 * 3600, 1, ""),
        (KeepsSpent(20 * 3600, 2), 4 * 3600, 1, ""),
        (KeepsSpent(20 * 3600, 2), 4 * 3600 + 1, 1, "4 h and 1 keeps are left"),
        (KeepsSpent(0, 0), 25 * 3600, 5, "1 d 1 h for 5 runs"),
        (KeepsSpent(60, 3), 60, 1, "all 3 keeps of the last 7 days are used"),
    ],
)
def test_an_order_is_within_both_bounds_or_refused_with_what_is_left(
    spent: KeepsSpent, cost_s: int, runs: int, words: str
) -> None:
    """One second too many is refused; the line has the cost and the rest."""
    found = BUDGET.refusal(spent, cost_s, runs)
    assert bool(found) == bool(words)
    assert words in found


def test_a_keep_is_bounded_for_everybody_and_a_site_may_permit_none() -> None:
    """Operators have no budget, but no keep is for ever."""
    assert BUDGET.too_long(12 * 3600) == ""
    assert "at most 12 h" in BUDGET.too_long(12 * 3600 + 1)
    assert "permits no keeps" in KeepBudget(0.0, 12.0, 3).refusal(KeepsSpent(), 60, 1)
