"""What a stretch of a reading counts as: cuts by the driver's own samples, rounding, and honest doubt."""

import pytest

from gpuwaste.agent.accumulator import whole_percent
from gpuwaste.agent.meter import MeterSpan, Stretch, utilization
from gpuwaste.ledger.hour import HOUR_MS

BASE = 1000 * HOUR_MS


@pytest.mark.parametrize(
    ("pct", "whole"),
    [(0, 0), (0.001, 1), (0.5, 1), (1.49, 1), (1.5, 2), (49.5, 50), (99.6, 100), (100, 100), (130, 100)],
)
def test_percent_is_rounded_half_up_and_zero_only_when_it_is_zero(pct: float, whole: int) -> None:
    """A GPU that did something is never counted as idle."""
    assert whole_percent(pct) == whole


def test_a_whole_interval_without_samples_is_its_mean() -> None:
    """PCP, and drivers that keep no samples: the interval's own value."""
    assert utilization(40.4, (), MeterSpan(BASE, BASE + 10_000, BASE, BASE + 10_000)) == [
        Stretch(BASE + 10_000, 40, BASE + 10_000)
    ]


@pytest.mark.parametrize(("pct", "state"), [(0.0, 0), (100.0, 100), (40.0, "gap")])
def test_a_cut_without_samples_is_known_at_the_extremes_alone(pct: float, state: object) -> None:
    """A mean of 40 % over an interval says nothing of its half; 0 and 100 do."""
    (stretch,) = utilization(pct, (), MeterSpan(BASE + 5_000, BASE + 10_000, BASE, BASE + 10_000))
    assert stretch.state == state


def test_a_sample_that_begins_before_the_cut_is_left_out() -> None:
    """The driver's sample over the moment of the start holds the job before: the new job must not look busy by it."""
    duty = tuple(((BASE + at) * 1000, pct) for at, pct in ((4_000, 100.0), (6_000, 50.0), (8_000, 0.0), (10_000, 0.0)))
    (stretch,) = utilization(37.5, duty, MeterSpan(BASE + 5_000, BASE + 10_000, BASE, BASE + 10_000))
    assert stretch == Stretch(BASE + 10_000, 0, None)


def test_an_interval_over_the_full_hour_is_cut_there() -> None:
    """Each hour gets the mean of the samples inside it."""
    begin = BASE + HOUR_MS - 4_000
    duty = tuple(((begin + at) * 1000, 100.0 if at <= 4_000 else 0.0) for at in range(1_000, 10_001, 1_000))
    stretches = utilization(40.0, duty, MeterSpan(begin, begin + 10_000, begin, begin + 10_000))
    assert [(stretch.end_ms - begin, stretch.state) for stretch in stretches] == [(4_000, 100), (10_000, 0)]
    assert stretches[0].active_ms == begin + 4_000
