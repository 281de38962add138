"""Views of drawn jobs have the totals of a plain definition in Python, whatever edge cuts them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.views.plain_views import held_s, lowest, waiting_s, within
from tests.unit.views.sites import DAY, MONTH, NOW, document, fact, jobs

from gpuwaste.show.view_document import ViewDocument
from gpuwaste.slurm.accounting.job_record import JobRecord

edges = st.builds(
    lambda start, length: (start, start + length),
    st.one_of(st.just(MONTH), st.integers(MONTH - 2 * DAY, MONTH + 2 * DAY)),
    st.one_of(st.just(7 * DAY), st.integers(1, 9 * DAY)),
)
Edges = tuple[int, int]


def numbers(found: ViewDocument, place: int) -> list[float]:
    """Return the numbers of a column."""
    return [cell for row in found.rows if isinstance(cell := row[place], int | float)]


@settings(max_examples=examples(40))
@given(jobs(), edges)
def test_what_jobs_hold_is_cut_at_the_window_and_adds_up_over_days(runs: list[JobRecord], window: Edges) -> None:
    """GPU- and CPU-hours of view jobs are those of each job's part in the window, in sum and as the sum of the days.

    Where the CPUs of none are known, there is no figure.
    """
    found = document(runs, "jobs", window)
    figures = {one.id: one.value for one in found.facts}
    for place, (of, name) in enumerate((("gpus", "gpu_hours"), ("cpus", "cpu_hours"))):
        expected = held_s(runs, window, NOW, of) / 3600
        assert figures.get(name, 0) == pytest.approx(expected)
        assert sum(numbers(found, place - 2)) == pytest.approx(expected)
    for name in ("submit", "start", "end"):
        told = {"submit": "submitted", "start": "started", "end": "ended"}[name]
        assert fact(found, told) == within([getattr(run, name) for run in runs], window)


@settings(max_examples=examples(40))
@given(jobs(), edges, st.integers(0, 9 * DAY))
def test_two_windows_that_meet_add_up_to_one(runs: list[JobRecord], window: Edges, at: int) -> None:
    """What jobs hold in two windows is what they hold in both together, to the second."""
    middle = window[0] + at % (window[1] - window[0])
    if middle == window[0]:
        return
    parts = [fact(document(runs, "jobs", part), "gpu_hours") for part in ((window[0], middle), (middle, window[1]))]
    assert sum(parts) == pytest.approx(fact(document(runs, "jobs", window), "gpu_hours"))


@settings(max_examples=examples(40))
@given(jobs(), edges)
def test_the_depth_of_the_queue_is_the_waiting_time_over_the_window(runs: list[JobRecord], window: Edges) -> None:
    """The mean depth is the seconds that jobs waited within the window over its length; all hours together have it."""
    found = document(runs, "queue", window)
    expected = waiting_s(runs, window, NOW) / (window[1] - window[0])
    assert fact(found, "depth_mean") == pytest.approx(expected)
    most = fact(found, "depth_most")
    assert most >= expected - 1e-9
    assert most <= len(runs)


@settings(max_examples=examples(30))
@given(jobs(), edges)
def test_waits_are_those_of_the_jobs_that_started(runs: list[JobRecord], window: Edges) -> None:
    """Median and 95th percentile are values that occur, the least that so many waits do not exceed, in no hour more."""
    waits = [run.start - run.submit for run in runs if run.start is not None and within([run.start], window)]
    found = document(runs, "waits", window)
    assert fact(found, "runs") == len(waits)
    if waits:
        assert fact(found, "wait_p50_s") == lowest(waits, 0.5)
        assert fact(found, "wait_p95_s") == lowest(waits, 0.95)
        assert fact(found, "wait_longest_s") == max(waits)
        assert fact(found, "worst_hour_p95_s") <= max(waits)


@pytest.mark.long
@settings(max_examples=examples(30))
@given(jobs(), edges)
def test_end_states_limits_and_kinds_count_the_jobs_that_ended(runs: list[JobRecord], window: Edges) -> None:
    """Each job that ended in the window counts once, whole, in each view that it belongs to."""
    ended = [run for run in runs if run.end is not None and within([run.end], window)]
    started = [run for run in ended if run.start is not None]
    limited = [run for run in started if run.time_limit_s]
    states = document(runs, "states", window)
    assert fact(states, "ended") == len(ended) == sum(numbers(states, 2))
    assert sum(numbers(states, 4)) == sum(run.state == "FAILED" for run in ended)
    by_state = zip(*(numbers(states, place) for place in range(3, 11)), strict=True)
    assert list(map(sum, by_state)) == numbers(states, 2)
    assert fact(document(runs, "sizes", window), "runs") == fact(document(runs, "kinds", window), "runs")
    assert fact(document(runs, "sizes", window), "runs") == len(started)
    limits = document(runs, "limits", window)
    assert fact(limits, "runs") == len(limited)
    if limited:
        used = sum(
            min(run.end - run.start, run.time_limit_s)
            for run in limited
            if run.end is not None and run.start is not None and run.time_limit_s
        )
        assert fact(limits, "used_share") == pytest.approx(used / sum(run.time_limit_s or 0 for run in limited))


@settings(max_examples=examples(40))
@given(jobs(), edges)
def test_without_samples_the_held_hours_are_still_known(runs: list[JobRecord], window: Edges) -> None:
    """View waste of a store of accounting alone has the GPU-hours of view jobs, and calls waste unknown."""
    found = document(runs, "waste", window)
    assert fact(found, "held_only_hours") == pytest.approx(held_s(runs, window, NOW, "gpus") / 3600)
    assert all(row[3] is None for row in found.rows)
