"""Predictions: bounds, levels, what is said without a model, and that asking changes nothing."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.advice.predict.site_of_predict import GIB, TRAIN, FormulaModel, Run, history

from gpuwaste.advice.predict.prediction_types import PredictDocument, TargetPrediction
from gpuwaste.advice.predict.predictor import NO_HISTORY, NO_MODEL, Predictor
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.advice.predict.vectors import vector_of
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.submit.job_request import JobRequest

FAILING = [Run(Outcome.FAILED if n in {1, 2, 4, 5, 6, 7} else Outcome.COMPLETED, 1200.0 + 60 * n) for n in range(8)]


def _target(prediction: PredictDocument, name: str) -> TargetPrediction:
    (found,) = [target for target in prediction.targets if target.target == name]
    return found


def test_quantiles_rise_and_stay_under_the_request() -> None:
    """Crossing quantiles are put in order; none exceeds the limit, the memory, the GPUs that are asked for."""
    model = FormulaModel(walltime_s=(500, 400, 9e9, 8e9), memory_b=(1, 2, 3, 99 * GIB), gpus=(1.0, 0.5, 9.0))
    said = Predictor(model, HistoryState()).predict(TRAIN)
    assert list(_target(said, "walltime").quantiles) == ["0.5", "0.9", "0.95", "0.99"]
    assert list(_target(said, "walltime").quantiles.values()) == pytest.approx([500, 500, 12 * HOUR_S, 12 * HOUR_S])
    assert max(_target(said, "memory").quantiles.values()) == 64 * GIB
    assert list(_target(said, "gpus_needed").quantiles.values()) == pytest.approx([1, 1, 4])


@pytest.mark.parametrize(("bias", "level"), [(-1.0, ""), (0.1, "warn"), (4.0, "reject")])
def test_the_level_is_the_highest_operating_point_reached(bias: float, level: str) -> None:
    """Thresholds of the manifest decide, the higher one wins."""
    assert _target(Predictor(FormulaModel(bias=bias), HistoryState()).predict(TRAIN), "failure").level == level


def test_the_rolling_correction_decides_where_there_is_one() -> None:
    """Jobs that ended all longer than said push the quantiles up."""
    model = FormulaModel(walltime_s=(500, 600, 700, 800))
    rolling = Rolling(model.manifest, model.hash)
    for _ in range(500):
        rolling.observe("walltime", [float(np.log(s)) for s in model.walltime_s], 5000.0)
    plain = Predictor(model, HistoryState()).predict(TRAIN)
    corrected = Predictor(model, HistoryState(), rolling).predict(TRAIN)
    assert _target(plain, "walltime").quantiles["0.9"] == pytest.approx(600)
    assert _target(corrected, "walltime").quantiles["0.9"] == pytest.approx(5000, rel=0.01)


def test_without_a_model_history_speaks_and_says_so() -> None:
    """Counts of the user's own last jobs, with the note; no model's name."""
    said = Predictor(None, history(FAILING)).predict(TRAIN)
    assert (said.model, said.model_hash) == ("", "")
    assert said.notes == [NO_MODEL]
    failure = _target(said, "failure")
    assert (failure.source, failure.basis, failure.p) == ("history", 8, 0.75)
    assert failure.reasons[0].text == "6 of your last 8 jobs named train failed"
    assert _target(said, "walltime").quantiles == pytest.approx({"0.5": 1560.0, "0.89": 1620.0}, rel=1e-3)
    assert _target(said, "walltime").reasons[0].text == "your last 8 jobs named train ran 20 min to 27 min"
    assert _target(said, "timeout").p == 0


def test_without_model_and_history_nothing_is_made_up() -> None:
    """A first job: no target at all, two notes."""
    said = Predictor(None, HistoryState()).predict(TRAIN)
    assert said.targets == []
    assert said.changes == []
    assert said.notes == [NO_MODEL, NO_HISTORY]


def test_two_jobs_are_no_history() -> None:
    """Below three ended jobs no share of failures is given."""
    said = Predictor(None, history(FAILING[:2])).predict(TRAIN)
    assert "failure" not in [target.target for target in said.targets]


def test_somebody_else_s_history_is_not_the_user_s() -> None:
    """Bob's first job gets nothing of alice's failures."""
    said = Predictor(None, history(FAILING)).predict(replace(TRAIN, user="bob"))
    assert said.targets == []


def test_a_baseline_bundle_is_no_model_of_the_site() -> None:
    """Its origin is said at every target and in the notes."""
    said = Predictor(FormulaModel(origin="baseline"), history(FAILING)).predict(TRAIN)
    assert _target(said, "failure").source == "baseline"
    assert NO_MODEL in said.notes


def test_a_model_without_the_user_s_jobs_says_that_it_has_none() -> None:
    """Alice's jobs are known, bob's are not: only the prediction for alice rests on jobs of its user."""
    predictor = Predictor(FormulaModel(), history(FAILING))
    assert predictor.predict(TRAIN).own_history
    said = predictor.predict(replace(TRAIN, user="bob"))
    assert (said.own_history, NO_HISTORY in said.notes) == (False, True)
    assert _target(said, "failure").p is not None


def test_a_target_without_a_model_is_told_by_history() -> None:
    """A site model of failure alone: walltime is history's, and what the bundle left out is noted."""
    said = Predictor(FormulaModel(), history(FAILING)).predict(TRAIN)
    assert _target(said, "failure").source == "site model"
    assert _target(said, "walltime").source == "history"
    assert "no model of memory: no MaxRSS" in said.notes


def test_gpus_are_judged_where_there_are_some() -> None:
    """A job without GPUs has no word on idle or needed ones."""
    cpu_job = replace(TRAIN, gpus=0, gpu_type="")
    said = Predictor(FormulaModel(gpus=(1, 1, 1)), history([Run(active=1)] * 4, cpu_job)).predict(cpu_job)
    assert not {"gpu_underused", "gpus_needed"} & {target.target for target in said.targets}


def test_a_job_of_another_name_and_size_tells_nothing_of_the_gpus_needed() -> None:
    """Who used the one GPU of a shell is not told that his first training on four GPUs needs one."""
    shell = replace(TRAIN, name="shell", gpus=1)
    said = Predictor(None, history([Run(active=1)], shell)).predict(TRAIN)
    assert "gpus_needed" not in {target.target for target in said.targets}
    assert said.changes == []


def test_history_tells_of_gpus_and_memory() -> None:
    """The last job's GPUs in use and its peak memory."""
    runs = [Run(max_rss_b=3.0 * GIB, active=1, used=0.02)] * 4
    said = Predictor(None, history(runs)).predict(TRAIN)
    assert _target(said, "gpu_underused").p == 1.0
    assert _target(said, "gpus_needed").quantiles == {"0.5": 1.0}
    assert _target(said, "memory").quantiles["0.5"] == pytest.approx(3 * GIB, rel=0.01)


def test_asking_changes_nothing() -> None:
    """Two questions have the same answer, and the vectors of others stay the same."""
    state = history(FAILING)
    other = replace(TRAIN, user="bob")
    before = vector_of(state, other)
    predictor = Predictor(FormulaModel({"name_failed_8": 0.4}, bias=-2), state)
    assert predictor.predict(TRAIN) == predictor.predict(TRAIN)
    assert np.array_equal(before, vector_of(state, other), equal_nan=True)


def test_a_request_of_nothing_is_answered() -> None:
    """Only a user: no limit, no amounts, no name."""
    said = Predictor(FormulaModel(walltime_s=(1, 2, 3, 4)), HistoryState()).predict(JobRequest("eve", 0))
    assert _target(said, "walltime").quantiles["0.99"] == pytest.approx(4)


def test_the_script_does_not_travel_back() -> None:
    """The document repeats the request without the script's text."""
    said = Predictor(None, HistoryState()).predict(replace(TRAIN, script="#!/bin/sh\nexport TOKEN=secret\n"))
    assert "secret" not in str(said)


def test_runs_without_a_limit_are_told_as_far_as_they_are_known() -> None:
    """A request without a limit: the longest run is known by itself, what stands as a share of a limit is not."""
    request = replace(TRAIN, time_limit_s=None)
    said = Predictor(None, history(FAILING, request)).predict(request)
    assert _target(said, "walltime").quantiles["0.89"] == pytest.approx(1620, rel=1e-3)
    assert "27 min" in _target(said, "walltime").reasons[0].text
