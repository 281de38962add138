"""A user's last submissions: how likely the unended ones are to fail, and that no user makes the history grow."""

import numpy as np
import pytest

from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.vectors import vector_of
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.jobs.history.recent_runs import RUNS, RecentRuns
from gpuwaste.slurm.submit.job_request import JobRequest

AT = {feature.name: place for place, feature in enumerate(FEATURES)}
BEGIN = 1_700_000_000


def asked(now: int, name: str = "train", user: str = "alice", cpus: int = 4) -> JobRequest:
    return JobRequest(user, BEGIN + now, name=name, cpus=cpus, time_limit_s=36000)


def value(state: HistoryState, name: str, request: JobRequest) -> float:
    return float(vector_of(state, request)[AT[name]])


def run(state: HistoryState, number: int, request: JobRequest, seconds: int | None, outcome: Outcome) -> None:
    """Submit and start a run; end it where it has a length."""
    state.submitted(request, number)
    state.started(number, request.submit, request.submit)
    if seconds is not None:
        state.ended(number, request.submit, request.submit + seconds, float(seconds), outcome)


def half_failed_early() -> HistoryState:
    """Return a history of four failures after a minute and four runs of an hour that completed."""
    state = HistoryState()
    for number in range(8):
        bad = number % 2
        run(state, number, asked(number), 60 if bad else 3600, Outcome.FAILED if bad else Outcome.COMPLETED)
    return state


def test_a_run_that_outlives_the_failures_is_likely_to_complete() -> None:
    """Four runs failed in a minute, four took an hour: an unended one is a coin at first, safe after ten minutes."""
    state = half_failed_early()
    run(state, 9, asked(4000), None, Outcome.UNKNOWN)
    for wait, likely in ((0, 4.3 / 10), (30, 4.3 / 10), (61, 0.3 / 6), (600, 0.3 / 6)):
        now = asked(4000 + wait)
        assert value(state, "user_likely_open", now) == pytest.approx(likely, rel=1e-5)
        assert value(state, "exact_open_age", now) == wait
        assert value(state, "name_open", now) == 1.0


def test_a_run_that_waits_is_as_likely_to_fail_as_any() -> None:
    """A waiting run has no age: the rate of the user stands for it, however long it has waited."""
    state = half_failed_early()
    state.submitted(asked(4000), 9)
    assert value(state, "user_likely_open", asked(4000 + 5000)) == pytest.approx(0.43, rel=1e-5)
    assert value(state, "user_open_age", asked(4000 + 5000)) == 0.0


def test_keys_tell_runs_apart() -> None:
    """A job of another name or size is of the user, and not of the name, the size or the request."""
    state = HistoryState()
    run(state, 1, asked(0, name="prepare", cpus=1), 60, Outcome.FAILED)
    run(state, 2, asked(100, name="train7", cpus=1), 60, Outcome.COMPLETED)
    request = asked(200, name="train8")
    assert [value(state, f"{key}_open", request) for key in ("user", "name", "shape", "exact")] == [0.0] * 4
    assert value(state, "name_likely_slow", request) == 0.0
    assert value(state, "user_likely_slow", request) == pytest.approx(0.93 / 1.93, rel=1e-5)
    assert np.isnan(value(state, "shape_likely_slow", request))
    assert np.isnan(value(state, "exact_likely_slow", request))


def test_a_user_of_many_names_has_one_row() -> None:
    """Names, sizes and open jobs of one user do not make what is kept of them grow."""
    state = HistoryState()
    for number in range(500):
        state.submitted(asked(number, name=f"n{'x' * (number % 50)}{number}", cpus=number + 1), number)
    assert len(state.recent) == 1
    assert value(state, "user_open", asked(600)) == RUNS


def test_an_end_of_a_run_that_is_no_longer_remembered() -> None:
    """A run behind sixteen newer ones ends: the newer ones stay as they are."""
    state = HistoryState()
    for number in range(RUNS + 1):
        run(state, number, asked(number), None, Outcome.UNKNOWN)
    before = state.recent.used().tobytes()
    assert state.ended(0, BEGIN, BEGIN + 50, 50.0, Outcome.FAILED)
    assert state.recent.used().tobytes() == before
    assert state.ended(1, BEGIN + 1, BEGIN + 51, 50.0, Outcome.FAILED)
    assert value(state, "user_open", asked(100)) == RUNS - 1


def test_the_oldest_users_go() -> None:
    """Over the bound users whose last submission is oldest are forgotten; their open runs still end."""
    state = HistoryState()
    state.recent = RecentRuns(max_users=40)
    for number in range(100):
        run(state, number, asked(number, user=f"u{number}"), None, Outcome.UNKNOWN)
        assert len(state.recent) <= 40
    assert value(state, "user_open", asked(200, user="u99")) == 1.0
    assert value(state, "user_open", asked(200, user="u0")) == 0.0
    assert state.ended(0, BEGIN, BEGIN + 300, 300.0, Outcome.FAILED)
    run(state, 200, asked(400, user="u0"), None, Outcome.UNKNOWN)
    assert value(state, "user_open", asked(401, user="u0")) == 1.0


def test_one_job_id_of_two_submissions() -> None:
    """A job id that is used again is another run: each end is that of its own submission."""
    state = HistoryState()
    run(state, 7, asked(0), None, Outcome.UNKNOWN)
    run(state, 7, asked(1000), None, Outcome.UNKNOWN)
    assert state.ended(7, BEGIN, BEGIN + 1100, 1100.0, Outcome.FAILED)
    assert value(state, "user_open", asked(1200)) == 1.0
    assert value(state, "user_open_age", asked(1200)) == 200.0
