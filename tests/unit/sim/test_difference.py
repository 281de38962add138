"""Differences of two runs against plain arithmetic, and intervals that have to hold what they are about."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sim.tables import Ran, case_of, history, some, waited

from gpuwaste.core.units import DAY_S, WEEK_S
from gpuwaste.sim.counterfactual import series_of
from gpuwaste.sim.difference import NamedDifference, Run, difference, held_until, sizes_of, wait_deltas
from gpuwaste.sim.intervals import MAX_BLOCKS, Blocks, interval, quantiles
from gpuwaste.sim.schedule_metrics import waits

NAMED = NamedDifference("easy", "gpus", "easy", "a change", {})


def test_figures_of_a_small_change_by_hand() -> None:
    """Two jobs in both runs, one refused: waits are of the two, hours are of all, starts are counted."""
    case = case_of(history([Ran(0, 100, 200), Ran(10, 3600, 3600, size=2), Ran(20, 50, 60)]), 2)
    base = Run(case.trace, waited(case.trace, [0, 90, 3680]), 2)
    kept = some(case.trace, [0, 2])
    changed = Run(kept, waited(kept, [0, 5]), 2)
    found = difference(case.table, base, changed, NAMED)
    assert found.jobs == 2
    wait = found.figures["mean_wait_s"]
    assert (wait.base, wait.changed, wait.difference, wait.low) == (1840.0, 2.5, -1837.5, None)
    assert found.figures["held_h"].difference == -2.0
    assert (found.later, found.earlier) == (0.0, 0.5)
    assert found.figures["makespan_s"].base == 3750
    assert found.figures["makespan_s"].changed == 100
    assert found.figures["utilization"].changed == pytest.approx(150 / 200)
    assert found.blocks == "1 day"


def test_what_does_not_fit_is_not_freed() -> None:
    """Hours of a job that the changed machine is too small for are on neither side."""
    case = case_of(history([Ran(0, 3600, 3600), Ran(10, 3600, 3600, size=2)]), 2)
    base, kept = Run(case.trace, waited(case.trace, [0, 3590]), 2), some(case.trace, [0])
    named = NamedDifference("easy", "processors=0.5", "easy", "a change", {}, (), np.array([1], dtype=np.int64))
    held = difference(case.table, base, Run(kept, waited(kept, [0]), 1), named).figures["held_h"]
    assert (held.base, held.changed) == (1.0, 1.0)


@given(
    drawn=st.lists(
        st.tuples(st.integers(0, 40 * DAY_S), st.integers(0, 9 * DAY_S), st.integers(1, 5), st.integers(0, 9 * DAY_S)),
        min_size=1,
        max_size=40,
    )
)
@settings(max_examples=examples(60))
def test_both_sides_have_the_figures_of_a_schedule(drawn: list[tuple[int, int, int, int]]) -> None:
    """Utilization, makespan and waits of the base are those that a simulation of it alone reports."""
    jobs = [Ran(submit, run, run + 60, size) for submit, run, size, _ in sorted(drawn)]
    case = case_of(history(jobs), 5)
    base = Run(case.trace, waited(case.trace, [wait for *_, wait in sorted(drawn)]), 5)
    found = difference(case.table, base, base, NAMED).figures
    alone = waits(case.trace, base.start, 5)
    assert found["mean_wait_s"].base == pytest.approx(alone.mean_wait_s, abs=1e-3)
    assert found["p95_wait_s"].base == pytest.approx(alone.p95_wait_s, abs=1e-3)
    assert found["utilization"].base == pytest.approx(alone.utilization, abs=2e-6)
    assert found["makespan_s"].base == alone.makespan_s
    assert all(delta.difference == 0 for delta in found.values())
    assert all(delta.low in {None, 0} and delta.high in {None, 0} for delta in found.values())


@given(
    jobs=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30), st.integers(1, 4)), min_size=1, max_size=20),
    edges=st.lists(st.integers(0, 90), min_size=2, max_size=9, unique=True),
)
@settings(max_examples=examples(80))
def test_held_until_is_the_sum_over_seconds(jobs: list[tuple[int, int, int]], edges: list[int]) -> None:
    """Processor-seconds between edges are those of every second in which a job runs."""
    first, run, size = (np.array(column, dtype=np.int64) for column in zip(*jobs, strict=True))
    places = np.array(sorted(edges), dtype=np.int64)
    found = np.diff(held_until(first, first + run, size, places))
    for (low, high), held in zip(pairwise(places), found, strict=True):
        wanted = sum(s * max(0, min(f + r, high) - max(f, low)) for f, r, s in jobs)
        assert held == pytest.approx(float(wanted))


def test_intervals_hold_a_shift_that_every_week_has() -> None:
    """A change that takes 60 s from each wait has an interval of exactly that; noise widens it around the mean."""
    drawing = np.random.default_rng(5)
    submit = np.sort(drawing.integers(0, 12 * WEEK_S, 4000))
    before = drawing.exponential(5000, 4000) + 60
    blocks = Blocks.of(submit)
    found = wait_deltas(blocks, blocks.places(submit), before, before - 60)["mean_wait_s"]
    assert found.low == pytest.approx(-60)
    assert found.high == pytest.approx(-60)
    noisy = wait_deltas(blocks, blocks.places(submit), before, before - drawing.exponential(600, 4000))
    mean = noisy["mean_wait_s"]
    assert mean.low is not None
    assert mean.high is not None
    assert mean.low < mean.difference < mean.high < 0
    assert mean.high - mean.low < 100


@pytest.mark.long
def test_intervals_cover_what_they_estimate() -> None:
    """Of 100 drawn traces of 20 weeks about 95 have the true mean difference inside their interval."""
    inside = 0
    for seed in range(100):
        drawing = np.random.default_rng(seed)
        submit = np.sort(drawing.integers(0, 20 * WEEK_S, 600))
        blocks = Blocks.of(submit)
        places = blocks.places(submit)
        shift = drawing.normal(-300, 200, blocks.count)[places] + drawing.normal(0, 500, 600)
        found = wait_deltas(blocks, places, np.full(600, 5000.0), 5000 + shift)["mean_wait_s"]
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= -300 <= found.high
    assert 82 <= inside <= 100


def test_quantiles_of_draws_are_near_the_quantile() -> None:
    """The middle of the drawn 95th percentiles is the 95th percentile of the values."""
    drawing = np.random.default_rng(2)
    submit = np.sort(drawing.integers(0, 30 * WEEK_S, 9000))
    blocks = Blocks.of(submit)
    values = drawing.exponential(1000, 9000)
    drawn = quantiles(blocks, blocks.places(submit), values, 0.95)
    assert np.median(drawn) == pytest.approx(np.percentile(values, 95), rel=0.02)
    assert interval(np.full(400, np.nan)) is None


def test_short_traces_have_days_or_no_interval() -> None:
    """Four weeks are blocks of weeks, four days blocks of days, and three days give no interval."""

    def of(days: int) -> Blocks:
        return Blocks.of(np.arange(0, days * DAY_S, 3600, dtype=np.int64))

    assert (of(28).text, of(28).enough) == ("4 weeks", True)
    assert (of(4).text, of(4).enough) == ("4 days", True)
    assert (of(3).text, of(3).enough) == ("3 days", False)
    assert of(1).text == "1 day"


def test_a_trace_of_any_length_has_a_bounded_number_of_blocks() -> None:
    """Jobs of nearly a century, and a queue that lasts a million years, are compared in bounded room."""
    jobs = [Ran(0, 10, 60), Ran(5, 10, 60), Ran(3 * 10**9, 10, 60)]
    case = case_of(history(jobs), 1)
    base, late = (Run(case.trace, waited(case.trace, [0, 5 + more, 10**13]), 1) for more in (0, 10**13))
    found = difference(case.table, base, late, NAMED)
    blocks = Blocks.of(case.trace.submit)
    assert blocks.count <= MAX_BLOCKS
    assert found.blocks == f"{blocks.count} blocks of {blocks.length_s // WEEK_S} weeks"
    assert found.figures["mean_wait_s"].difference == pytest.approx(10**13 / 3)


def test_sizes_are_powers_of_two() -> None:
    """Sizes are 1, 2, 3-4, 5-8."""
    found = sizes_of(np.array([1, 2, 3, 4, 5, 8, 9], dtype=np.int64))
    assert [found.values[code] for code in found.codes] == ["1", "2", "3-4", "3-4", "5-8", "5-8", "9-16"]


def test_groups_are_those_with_most_jobs() -> None:
    """Of 30 users the 20 with most jobs are listed, each with its own waits, and ten are counted."""
    jobs = [Ran(k, 1, 60, user=f"u{k % 30:02d}") for k in range(60)] + [Ran(60, 1, 60, user="u29")]
    case = case_of(history(jobs), 64)
    base = Run(case.trace, waited(case.trace, [0] * 61), 64)
    later = Run(case.trace, waited(case.trace, [60 if job.user == "u29" else 0 for job in jobs]), 64)
    found = difference(case.table, base, later, NAMED)
    assert found.groups_left_out == {"user": 10}
    first = found.groups["user"][0]
    assert (first.name, first.jobs, first.mean_wait_s.difference) == ("u29", 3, 60.0)
    assert "account" not in found.groups


def test_series_add_up() -> None:
    """What runs hold and what waits over the bins is the sum over the jobs."""
    case = case_of(history([Ran(0, 1000, 2000, size=2), Ran(100, 500, 600), Ran(5000, 10, 60)]), 2)
    run = Run(case.trace, waited(case.trace, [0, 900, 0]), 2)
    (found,) = series_of({"easy": run})
    lasts = np.diff([*found.at, 5010])
    assert (np.array(found.used) * lasts * 2).sum() == pytest.approx(2510, rel=1e-2)
    assert (np.array(found.waiting) * lasts).sum() == pytest.approx(900, rel=1e-2)
    assert found.mean_wait_s[0] == 0.0
    assert None in found.mean_wait_s
    assert series_of({"easy": Run(some(case.trace, []), np.array([], dtype=np.int64), 2)}) == []
