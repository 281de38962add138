"""Campaigns with a known effect: intervals cover it as often as they say, and nothing is found where nothing is.

Each test draws campaigns with users of a public trace and of a generated cluster, assigned by the product's own hash.
An interval counts as covering only if no weekly look of the campaign has rejected the effect: who looks each week sees
what is counted here.
"""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.examples import few
from tests.public_data import public

from gpuwaste.act.campaigns.campaign_effect import enough, more_of_jobs, saved_share, with_spill_over
from gpuwaste.act.campaigns.campaign_panel import relative_panel, share_panel
from gpuwaste.act.campaigns.randomisation import LEVEL, holds, interval, paths, rejected
from gpuwaste.testing.campaign_draws import InjectedEffect, Population, campaign, drawn, generated, philly

pytestmark = [pytest.mark.drawn, pytest.mark.long]
USERS = 120
WEEKS = 6
SHARE = 0.3
THIRD = InjectedEffect(SHARE)
PHILLY = "philly"
GENERATED = "generated"


def draws() -> int:
    """Return how many campaigns a test draws."""
    return 300 if few() else 2000


@cache
def population(name: str) -> Population:
    """Return the users of a cluster."""
    if name == GENERATED:
        return generated()
    return philly(Path(public("gpu/philly_dre/philly_sampled_jobs.parquet")).parent)


def within(covered: int, count: int) -> bool:
    """Return whether a share is 93 to 97 of 100; with few draws, within three standard errors of 95."""
    return abs(covered / count - (1 - LEVEL)) <= max(0.02, 3 * math.sqrt(LEVEL * (1 - LEVEL) / count))


def covered(name: str, effect: InjectedEffect, *, rollout_weeks: int = 0, users: int = USERS) -> tuple[int, int]:
    """Return how many campaigns cover what was really saved, and how many claim a saving at any look."""
    planned = campaign(WEEKS, rollout_weeks=rollout_weeks, before=4)
    cover = claims = 0
    for seed in range(draws()):
        one = drawn(population(name), planned, users, effect, seed)
        found = paths(relative_panel(one.data, "idle_h"), WEEKS, draws=499, seed=seed)
        truth = one.saved_share if effect.kind != "always" or effect.spill else effect.share
        cover += holds(found, truth / (1 - truth), WEEKS)
        claims += rejected(-found.at(0.0, WEEKS), found.spent / 2) is not None
    return cover, claims


@pytest.mark.parametrize("name", [PHILLY, GENERATED])
@pytest.mark.parametrize(
    "effect",
    [
        pytest.param(THIRD, id="each-week-of-each-user"),
        pytest.param(replace(THIRD, kind="weeks"), id="some-weeks"),
        pytest.param(replace(THIRD, kind="varied"), id="another-share-of-each-user"),
        pytest.param(replace(THIRD, giant=True), id="a-user-with-half-of-everything"),
        pytest.param(replace(THIRD, drift=0.6), id="drift"),
    ],
)
def test_the_interval_covers_an_injected_effect(name: str, effect: InjectedEffect) -> None:
    """In 93 to 97 of 100 campaigns no look rejects what was really saved: for any kind of effect, user and drift."""
    cover, _ = covered(name, effect)
    assert within(cover, draws()), cover / draws()


@pytest.mark.parametrize("name", [PHILLY, GENERATED])
def test_a_stepped_rollout_covers_as_well(name: str) -> None:
    """The same holds where users are notified in groups, one more each week."""
    cover, _ = covered(name, THIRD, rollout_weeks=4)
    assert within(cover, draws()), cover / draws()


@pytest.mark.parametrize("name", [PHILLY, GENERATED])
def test_without_an_effect_no_saving_is_found(name: str) -> None:
    """Of campaigns without an effect (A/A) at most 5 in 100 ever claim a saving, whoever looks each week."""
    cover, claims = covered(name, InjectedEffect(0.0))
    assert within(cover, draws()), cover / draws()
    assert claims / draws() <= LEVEL, claims / draws()


def test_more_failures_are_covered() -> None:
    """The interval of the difference of failures covers what was injected, and none is found where none is."""
    planned, cover, silent = campaign(WEEKS, before=4), 0, 0
    for seed in range(draws()):
        one = drawn(population(GENERATED), planned, USERS, InjectedEffect(0.0, failed=5.0), seed)
        found = paths(share_panel(one.data, "failed"), WEEKS, draws=499, seed=seed)
        cover += holds(found, one.failed_more, WEEKS)
        none = drawn(population(GENERATED), planned, USERS, InjectedEffect(0.0), seed)
        silent += holds(paths(share_panel(none.data, "failed"), WEEKS, draws=499, seed=seed), 0.0, WEEKS)
    assert within(cover, draws()), cover / draws()
    assert within(silent, draws()), silent / draws()


def test_users_who_talk_only_shrink_the_effect() -> None:
    """Where those held back have half of the effect, the comparison covers the smaller one, and the bound is right."""
    planned, cover = campaign(WEEKS, before=4), 0
    measured = 1 - (1 - SHARE) / (1 - SHARE / 2)
    for seed in range(draws()):
        one = drawn(population(PHILLY), planned, USERS, replace(THIRD, spill=0.5), seed)
        found = paths(relative_panel(one.data, "idle_h"), WEEKS, draws=499, seed=seed)
        cover += holds(found, measured / (1 - measured), WEEKS)
    assert within(cover, draws()), cover / draws()
    assert with_spill_over(measured) == pytest.approx(SHARE)


def test_the_printed_interval_is_the_one_that_is_tested() -> None:
    """The ends of a figure are where the test begins to reject: what is printed is what the other tests count."""
    planned = campaign(WEEKS, before=4)
    bounded = 0
    for seed in range(20):
        one = drawn(population(GENERATED), planned, 300, replace(THIRD, share=0.5), seed)
        assert enough(one.data)
        figure = saved_share(one.data, "idle_h")
        assert figure.low is not None
        assert figure.value is not None
        found = paths(relative_panel(one.data, "idle_h"), WEEKS)
        for end, step in ((figure.low, 0.01), (figure.high, -0.01)):
            if end is not None and -2.9 < end < 0.9:
                bounded += 1
                inside, outside = (one_share / (1 - one_share) for one_share in (end + step / 20, end - step))
                assert holds(found, inside, WEEKS)
                assert not holds(found, outside, WEEKS)
        failures = more_of_jobs(one.data, "failed")
        assert failures.low is not None
        assert failures.high is not None
        assert failures.low < failures.high
    assert bounded > 20


def test_an_interval_never_leaves_what_earlier_looks_left() -> None:
    """The interval of a later look is within that of the ones before: a rejected effect does not come back."""
    planned = campaign(WEEKS, before=4)
    grid = np.linspace(-0.7, 4, 80)
    for seed in range(10):
        one = drawn(population(GENERATED), planned, 200, THIRD, seed)
        found = paths(relative_panel(one.data, "idle_h"), WEEKS, draws=499)
        ends = [interval(found, look, grid) for look in range(1, WEEKS + 1)]
        for before, after in pairwise(ends):
            if before is None or after is None:
                continue
            assert (after[0] if after[0] is not None else -9.0) >= (before[0] if before[0] is not None else -9.0) - 1e-6
            assert (after[1] if after[1] is not None else 99.0) <= (before[1] if before[1] is not None else 99.0) + 1e-6
