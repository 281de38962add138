"""The chance that a running job reaches its limit: from timeouts and run times, given how long it has run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.advice.predict.prediction_types import Source, TargetPrediction
from gpuwaste.advice.rescorer import limit_chance

HOUR = 3600.0


def said(
    timeout: float | None = None, source: Source = "site model", basis: float = 8, **quantiles: float
) -> list[TargetPrediction]:
    """Return predictions; a quantile's name is its level in percent, such as q50."""
    found = [] if timeout is None else [TargetPrediction("timeout", source, int(basis), timeout)]
    levels = {f"{int(name[1:]) / 100:g}": seconds for name, seconds in quantiles.items()}
    return [*found, TargetPrediction("walltime", source, int(basis), quantiles=levels)] if levels else found


def test_at_the_start_it_is_the_share_of_jobs_that_reach_their_limit() -> None:
    """Nothing is known of the run yet but its request."""
    assert limit_chance(said(0.2, q50=HOUR), 0.0, 4 * HOUR) == pytest.approx(0.2)


def test_who_has_outlived_half_of_the_jobs_is_twice_as_likely_to_reach_it() -> None:
    """A fifth of all jobs reach the limit; half of them have ended when this one has run for an hour."""
    assert limit_chance(said(0.2, q50=HOUR), HOUR, 4 * HOUR) == pytest.approx(0.4)


def test_a_limit_below_the_usual_run_time_is_reached_by_half() -> None:
    """The median of the user's runs is as long as the limit: none of them was ended by it, for theirs were longer."""
    assert limit_chance(said(0.0, "history", 3, q50=2 * HOUR), 0.0, 2 * HOUR) == pytest.approx(0.5)


def test_a_job_that_has_outlived_all_earlier_ones_goes_on_to_its_limit() -> None:
    """None of eight runs of an hour reached a limit of ten: after nine hours nothing is left that would end it."""
    runs = said(0.0, "history", 8, q50=HOUR, q89=1.1 * HOUR)
    early, late = limit_chance(runs, 0.5 * HOUR, 10 * HOUR), limit_chance(runs, 9 * HOUR, 10 * HOUR)
    assert early is not None
    assert late is not None
    assert early < 0.15
    assert late > 0.9


def test_nothing_is_said_where_nothing_is_known() -> None:
    """No model of timeouts, no run that ended, no limit."""
    assert limit_chance([], 60.0, HOUR) is None
    assert limit_chance(said(q50=60.0), 60.0, HOUR) is None
    assert limit_chance(said(0.5), 60.0, 0.0) is None


def test_quantiles_that_cross_leave_nobody_more_alive_than_before() -> None:
    """A median above the 90 % quantile does not bring runs back: the chance does not fall from one hour to the next."""
    runs = said(0.25, q50=2 * HOUR, q90=1 * HOUR)
    chances = [limit_chance(runs, hours * HOUR, 8 * HOUR) for hours in (0.5, 1, 1.5, 2, 3)]
    assert chances == sorted(chance for chance in chances if chance is not None)


LEVELS = st.fixed_dictionaries({f"q{level}": st.floats(0, 1e7) for level in (50, 90, 95, 99)})


@given(st.floats(0, 1), st.sampled_from(("site model", "history")), LEVELS, st.floats(0, 2e6), st.floats(0.1, 1e6))
def test_it_is_a_probability_that_never_falls(
    p: float, source: Source, levels: dict[str, float], ran_s: float, limit_s: float
) -> None:
    """Whatever the quantiles are, in any order, it lies from 0 to 1, and no less for who has run longer."""
    runs = said(p, source, **levels)
    first, second = limit_chance(runs, ran_s / 2, limit_s), limit_chance(runs, ran_s, limit_s)
    if first is None or second is None:
        assert p == 0
        return
    assert 0 <= first <= second + 1e-9
    assert second <= 1
