"""Figures of runs and ensembles, by hand."""

import pytest

from gpuwaste.sim.document import spread
from gpuwaste.sim.real.engine import agreement, run_figures
from gpuwaste.sim.real.real_jobs import Ended, ReplayedOutcome, TraceSubmission


def outcome(job: int, submit: int, start: int | None, end: int | None, state: str = "COMPLETED") -> ReplayedOutcome:
    return ReplayedOutcome(job, submit, Ended(job, state, None if start is None else submit + 1, start, end, "n1"))


def test_figures_of_a_run() -> None:
    """Waits count from slurmctld's submit time; jobs without a start count in the states alone."""
    jobs = [
        TraceSubmission(1, 0, 100, 200, ()),
        TraceSubmission(2, 10, 3700, 100, ()),
        TraceSubmission(3, 20, 5, 60, ()),
    ]
    rows = [outcome(1, 0, 1, 103), outcome(2, 10, 111, 221, "TIMEOUT"), outcome(3, 20, None, None, "NEVER_STARTED")]
    found = run_figures(2, rows, jobs, complete=True, wall_s=1.26)
    assert found.states == {"COMPLETED": 1, "NEVER_STARTED": 1, "TIMEOUT": 1}
    assert (found.mean_wait_s, found.max_wait_s, found.makespan_s) == (50.0, 100.0, 221.0)
    assert found.p95_submitted_late_s == 1.0
    assert found.mean_ran_longer_s == 6.0  # 102 s for 100, 110 s for a limit of 100
    assert found.mean_bounded_slowdown == pytest.approx((1 + 210 / 110) / 2, abs=1e-4)


def test_a_run_in_which_nothing_ended() -> None:
    """No figure is made up."""
    found = run_figures(1, [outcome(1, 0, None, None, "NOT_ENDED")], [], complete=False, wall_s=1)
    assert (found.mean_wait_s, found.complete) == (None, False)


def test_the_interval_is_students() -> None:
    """Three values around 20 with a deviation of 10: 20 plus and minus 4.303 * 10 / sqrt(3)."""
    found = spread([10, 20, 30])
    assert found is not None
    assert (found.mean, found.deviation, found.low, found.high) == (20, 10, -4.843, 44.843)
    one = spread([5.0])
    assert one is not None
    assert (one.mean, one.low, one.high) == (5.0, None, None)
    assert spread([]) is None


def test_starts_of_all_pairs() -> None:
    """Three runs of two jobs are three pairs: six differences, jobs that did not start count in none."""
    runs = [
        [outcome(1, 0, 10, 20), outcome(2, 0, 100, 110)],
        [outcome(1, 0, 14, 20), outcome(2, 0, 150, 160)],
        [outcome(1, 0, 10, 20), outcome(2, 0, None, None)],
    ]
    found = agreement(runs)  # 4, 50; 0; 4
    assert found is not None
    assert (found.pairs, found.median_start_s, found.within_5_s, found.within_60_s) == (3, 4.0, 0.75, 1.0)
    assert agreement(runs[:1]) is None
