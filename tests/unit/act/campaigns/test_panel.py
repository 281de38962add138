"""Outcomes of units: who leaves, who changes the account, weeks without data, one giant, too few."""

import numpy as np
import pytest
from tests.unit.act.campaigns.builders import campaign_of

from gpuwaste.act.campaigns.assignment import Assignment
from gpuwaste.act.campaigns.campaign_effect import enough, saved_share, smallest_effect
from gpuwaste.act.campaigns.campaign_panel import campaign_data
from gpuwaste.act.campaigns.unit_weeks import WeekOutcome, by_unit
from gpuwaste.testing.campaign_draws import InjectedEffect, campaign, drawn, generated

ASSIGNMENT = Assignment(b"0123456789abcdef")


def outcome(idle_h: float, held_h: float = 10.0, unknown_h: float = 0.0) -> WeekOutcome:
    """Return a week of a unit."""
    return WeekOutcome(held_h=held_h, idle_h=idle_h, unknown_h=unknown_h, jobs=1)


def test_a_user_who_changes_the_account_is_in_both_accounts() -> None:
    """With accounts as units each job counts for its own account; with users both are one unit."""
    week = {("alice", "physics"): outcome(1), ("alice", "chemistry"): outcome(2), ("bob", "physics"): outcome(4)}
    by_account = by_unit(campaign_of(unit='"account"'), week)
    assert {unit: one.idle_h for unit, one in by_account.items()} == {"physics": 5, "chemistry": 2}
    assert {unit: one.idle_h for unit, one in by_unit(campaign_of(), week).items()} == {"alice": 3, "bob": 4}


def test_users_who_are_not_concerned_are_left_out() -> None:
    """Only users and accounts of the file are units."""
    week = {("alice", "physics"): outcome(1), ("bob", "chemistry"): outcome(2)}
    assert by_unit(campaign_of(accounts='["phys*"]'), week).keys() == {"alice"}


def test_who_leaves_still_counts_and_who_comes_too() -> None:
    """A unit without jobs in a week has 0 there, before as in the campaign."""
    before = [{"left": outcome(3)}, {"left": outcome(3)}]
    during = [{"new": outcome(5)}, {"left": outcome(1), "new": outcome(5)}]
    data = campaign_data(campaign_of(), ASSIGNMENT, before, during)
    assert list(data.units) == ["left", "new"]
    assert data.before["idle_h"].tolist() == [[3, 3], [0, 0]]
    assert data.during["idle_h"].tolist() == [[0, 1], [5, 5]]
    assert data.looks == 2
    assert data.planned == 12


def test_a_month_without_data_is_left_out() -> None:
    """Weeks without GPU-hours, or of which most are unknown, count nowhere."""
    units = [f"user{number}" for number in range(40)]
    good = {unit: outcome(2) for unit in units}
    empty: dict[str, WeekOutcome] = {}
    unknown = {unit: outcome(0, 10, 8) for unit in units}
    data = campaign_data(campaign_of(), ASSIGNMENT, [good, good], [good, empty, unknown, good])
    assert data.known.tolist() == [True, False, False, True]
    assert data.sum_notified("held_h") + data.sum_held_back("held_h") == 2 * 40 * 10
    figure = saved_share(data, "idle_h")
    assert figure.value == pytest.approx(0, abs=1e-9)


def test_nothing_is_claimed_with_too_few_units() -> None:
    """With three units on a side, or none, every figure is unknown."""
    few = {f"user{number}": outcome(2) for number in range(5)}
    data = campaign_data(campaign_of(), ASSIGNMENT, [few, few], [few])
    assert not enough(data)
    assert saved_share(data, "idle_h").value is None
    nobody = campaign_data(campaign_of(), ASSIGNMENT, [], [])
    assert not enough(nobody)
    assert smallest_effect(nobody, 12) is None


def test_nobody_idles() -> None:
    """Where nothing is idle there is no effect to see, and no error."""
    units = {f"user{number}": outcome(0) for number in range(40)}
    data = campaign_data(campaign_of(), ASSIGNMENT, [units, units], [units, units])
    assert saved_share(data, "idle_h").value is None
    assert smallest_effect(data, 12) is None


def test_equal_data_give_equal_figures() -> None:
    """The order of the users, and who asks how often, changes nothing."""
    one = drawn(generated(), campaign(6, before=4), 100, InjectedEffect(0.4), 3).data
    assert saved_share(one, "idle_h") == saved_share(one, "idle_h")


def test_more_users_and_weeks_see_smaller_effects() -> None:
    """The smallest effect shrinks with the number of users and of weeks."""
    small, large = (
        drawn(generated(2000), campaign(12, before=6), users, InjectedEffect(drift=0), 1).data for users in (100, 1000)
    )
    found = [smallest_effect(small, 4), smallest_effect(small, 12), smallest_effect(large, 12)]
    assert None not in found
    assert found == sorted(found, key=lambda value: -(value or 0))
    assert np.isfinite([value or 0.0 for value in found]).all()
