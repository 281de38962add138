"""Reasons: effects by occlusion of whole groups, in one call of the model, in numbers that are the user's own."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.advice.predict.site_of_predict import NAMES, NOW, TRAIN, FormulaModel, Run, history

from gpuwaste.advice.predict import vector_words
from gpuwaste.advice.predict.explain import bundled, occluded
from gpuwaste.advice.predict.prediction_types import Reason
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.core.units import HOUR_S, say_duration
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.outcome import Outcome

FAILED = Run(Outcome.FAILED, 1200.0)
GOOD = Run(Outcome.COMPLETED, 2100.0)
USUAL = {"name_failed_8": 1.0, "user_failed_8": 1.0, "limit": 3600.0}


def _reasons(model: FormulaModel, state: HistoryState) -> tuple[Reason, ...]:
    return Predictor(model, state).predict(TRAIN).targets[0].reasons


def test_the_features_of_sentences_are_there() -> None:
    """Every name in vector_words.py is a feature of each key, or of the request: a renamed one is seen here."""
    runs = {*vector_words.LAST_RUNS, vector_words.SHORTEST}
    own = {value for name, value in vars(vector_words).items() if name.isupper() and isinstance(value, str)}
    assert vector_words.LIMIT in NAMES
    for name in own - {vector_words.LIMIT, vector_words.OF_LIMIT, vector_words.SHORTEST}:
        assert {f"{key}_{name}" for key in vector_words.OWN} <= set(NAMES), name
    for name in runs:
        assert all(
            {f"{key}_{name}", f"{key}_{name}{vector_words.OF_LIMIT}"} & set(NAMES) for key in vector_words.OWN
        ), name


def test_every_feature_is_in_one_group() -> None:
    """The groups cover the vector once."""
    columns = [column for group in bundled() for column in group.columns]
    assert sorted(columns) == list(range(len(NAMES)))


def test_an_effect_is_the_probability_less_that_of_the_usual_value() -> None:
    """Two correlated counts of the same failures are one reason, with the effect of both."""
    state = history([FAILED] * 6 + [GOOD] * 2)
    model = FormulaModel({"name_failed_8": 0.3, "user_failed_8": 0.2, "limit": 0.00002}, bias=-3.0, references=USUAL)

    def p(failed: float, limit: float) -> float:
        return float(1 / (1 + np.exp(-(-3.0 + 0.5 * failed + 0.00002 * limit))))

    first, second = _reasons(model, state)
    now = p(6, 12 * HOUR_S)
    assert first.text == "6 of your last 8 jobs named train failed"
    assert (first.feature, first.value, first.usual) == ("name_failed_8", 6.0, 1.0)
    assert first.effect == pytest.approx(now - p(1, 12 * HOUR_S), abs=1e-5)
    assert second.text == "a time limit of 12 h"
    assert second.effect == pytest.approx(now - p(6, 3600), abs=1e-5)


def test_durations_are_told_beside_the_limit() -> None:
    """Where the run times decide, the sentence has the limit and the span of the last runs."""
    state = history([Run(run_s=1200.0 + 180 * n) for n in range(6)])
    model = FormulaModel(
        {"name_run_max_of_limit": -50.0, "shape_run_1": -0.0001}, references={"name_run_max_of_limit": 0.5}
    )
    (reason,) = _reasons(model, state)
    assert reason.text == "you requested 12 h; your last 6 jobs named train ran 20 min to 35 min"


def test_all_groups_are_one_call() -> None:
    """A prediction calls a model for the answer once and for its reasons once."""
    model = FormulaModel({"name_failed_8": 1.0})
    Predictor(model, history([FAILED] * 4)).predict(TRAIN)
    assert model.calls == [("failure", 1), ("failure", 1 + len(bundled()))]


def test_an_unknown_reference_is_unknown_in_the_vector_too() -> None:
    """A feature that training never knew is put to NaN, and only its own group is."""
    vector = np.arange(len(NAMES), dtype=np.float32)
    rows = occluded(vector, [None] * len(NAMES), bundled())
    assert np.array_equal(rows[0], vector)
    for row, group in zip(rows[1:], bundled(), strict=True):
        assert np.flatnonzero(np.isnan(row)).tolist() == sorted(group.columns)


def test_a_first_job_has_reasons_of_the_request_alone() -> None:
    """No history: no sentence about earlier jobs."""
    found = _reasons(FormulaModel({"limit": 0.0001, "name_failed_8": 1.0}, references=USUAL), HistoryState())
    assert [reason.feature for reason in found] == ["limit"]


def test_a_reason_tells_nothing_of_other_people_s_jobs() -> None:
    """What the account's and the partition's jobs did is told without any number."""
    state = history([FAILED] * 6, replace(TRAIN, user="bob"))
    model = FormulaModel({"account_failed_8": 0.5, "partition_run_1": 0.001}, references={"account_failed_8": 0.0})
    found = _reasons(model, state)
    assert [reason.text for reason in found] == [
        "how jobs of this account ended lately",
        "how long jobs in this partition and QOS ran lately",
    ]
    assert all(reason.value is None and reason.usual is None for reason in found)


def test_a_name_that_imitates_a_sentence_stays_a_name() -> None:
    """Braces and words of ours in a job's name are text."""
    request = replace(TRAIN, name="{value} jobs of this user {jobs}")
    state = history([FAILED] * 4, request)
    said = Predictor(FormulaModel({"name_failed_8": 1.0}, references=USUAL), state).predict(request)
    assert said.targets[0].reasons[0].text == "4 of your last 4 jobs named {value} jobs of this user {jobs} failed"


RUNS = st.lists(
    st.builds(
        Run,
        outcome=st.sampled_from([Outcome.COMPLETED, Outcome.FAILED, Outcome.OUT_OF_MEMORY, Outcome.CANCELLED]),
        run_s=st.integers(1, 40 * HOUR_S).map(float),
    ),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=examples(60))
@given(RUNS)
def test_the_numbers_of_a_reason_are_those_of_the_user_s_jobs(runs: list[Run]) -> None:
    """Any history: the failures counted, the jobs looked back on and the span of run times are what happened."""
    last = runs[-8:]
    failed = sum(run.outcome in {Outcome.FAILED, Outcome.OUT_OF_MEMORY} for run in last)
    weights = {
        "name_failed_8": 3.0,
        "name_fail_fast": 3.0,
        "name_run_max": 1e-4,
        "name_run_min_of_limit": -1.0,
        "limit": 1e-4,
    }
    state = history(runs, replace(TRAIN, submit=NOW))
    for reason in _reasons(FormulaModel(weights, references=USUAL), state):
        if reason.feature == "name_failed_8":
            assert reason.text == f"{failed} of your last {len(last)} jobs named train failed"
        elif reason.feature == "name_fail_1":
            assert reason.text == f"your last job named train {'failed' if failed else 'did not fail'}"
        elif reason.feature == "name_run_max":
            said = re.search(r"ran (.+?)(?: to (.+))?$", reason.text)
            assert said is not None
            low, high = min(run.run_s for run in last), max(run.run_s for run in last)
            assert _close(said[1], low)
            assert _close(said[2] or said[1], high)
        elif reason.feature == "name_ended":
            assert reason.text == f"{len(runs)} of your jobs named train ended so far"
        else:
            assert reason.text == f"a time limit of {say_duration(12 * HOUR_S)}"


def _close(text: str, seconds: float) -> bool:
    """Tell whether a text says these seconds; the packed state holds minutes with three digits."""
    return any(text == say_duration(seconds * (1 + error / 5000)) for error in range(-5, 6)) or seconds < 60
