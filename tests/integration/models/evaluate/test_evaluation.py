"""An evaluation as a whole: its JSON, its words, what it leaves out."""

import json
import math

import numpy as np
import pytest
from tests.integration.models.evaluate.logs import job, mixed_jobs, table

from gpuwaste.advice.predict.bundle import our_features
from gpuwaste.advice.predict.rolling import busy_users, roll
from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.core.errors import NoDataError
from gpuwaste.models.evaluate.evaluation_text import JFP, evaluation_json, evaluation_text
from gpuwaste.models.evaluate.log_evaluation import Evaluation, evaluate
from gpuwaste.models.evaluate.method import EvaluationTask
from gpuwaste.models.evaluate.methods.model import said
from gpuwaste.models.training_rows import split_by_time

pytestmark = pytest.mark.long


def test_the_json_is_target_method_metric_value(evaluated: Evaluation) -> None:
    """Every leaf is a number or null, ours is called model, and intervals lie round their values."""
    document = json.loads(json.dumps(evaluation_json(evaluated), allow_nan=False))
    assert set(document) == {"failure", "failure_or_cancel", "walltime"}
    for methods in document.values():
        assert "model" in methods
        for metrics in methods.values():
            assert metrics
            assert all(value is None or isinstance(value, float) for value in metrics.values())
            for name in metrics:
                if f"{name}_low" in metrics and None not in (metrics[f"{name}_low"], metrics[name]):
                    assert metrics[f"{name}_low"] <= metrics[name] + 0.05
    assert {"average_precision", "f1", "accuracy", "recall_at_precision_0.95", "ece", "brier"} <= set(
        document["failure"]["model"]
    )
    assert {"under_rate_0.9", "under_rate_0.95", "under_rate_0.99"} <= set(document["walltime"]["model"])
    assert set(document["failure"]) == {
        *("majority", "last_outcome", "weighted_rate", "request_fields", "model", "jfp")
    }
    assert set(document["walltime"]) == {"user_request", "last_two", "raw_quantiles", "request_fields", "model"}


def test_the_text_names_the_rule_of_ends_on_every_table_and_labels_the_other_protocol(evaluated: Evaluation) -> None:
    """A reader of one table alone cannot take it for more than it is."""
    text = evaluation_text(evaluated)
    heads = [line for line in text.splitlines() if " jobs of " in line and line.split(" ")[0] in BY_NAME]
    assert len(heads) == 2
    assert all(line.endswith("ends: accounting") for line in heads)
    assert JFP in text
    assert "failure_or_cancel: every label is that of failure" in text
    assert "memory: n/a: no job has a MaxRSS" in text
    assert "nan" not in text


def test_a_log_without_status_has_walltime_only_and_says_so() -> None:
    """Failures and timeouts are left out with the reason, though a run at its limit looks like a timeout."""
    jobs = table(mixed_jobs(status=False))
    found = evaluate("nostatus", jobs, replay_vectors(jobs).vectors, threads=1, intervals=False)
    assert list(found.results) == ["walltime"]
    assert {"failure", "failure_or_cancel", "timeout"} <= set(found.left_out)
    assert "walltime only" in evaluation_text(found)
    model = found.results["walltime"]["model"].figures
    assert model["under_rate_0.95"].value < 0.25
    assert math.isnan(model["under_rate_0.95"].low)


def test_a_log_of_which_nothing_had_ended_is_one_line() -> None:
    """Where every job is still running when the validation part begins there is nothing to learn."""
    jobs = table([job(i, "a", 1000 + i, 10_000) for i in range(1, 101)])
    with pytest.raises(NoDataError, match="nothing could be learnt"):
        evaluate("short", jobs, replay_vectors(jobs).vectors)


def test_the_correction_is_that_of_predict() -> None:
    """A user with other jobs in the system has the window of such users, as online, in training and in status."""
    jobs = table(mixed_jobs(1600))
    vectors = replay_vectors(jobs).vectors
    question = EvaluationTask(BY_NAME["walltime"], jobs, vectors, split_by_time(jobs), threads=1)
    learnt, busy = question.learnt, busy_users(vectors, our_features().names)
    scored = np.arange(len(jobs)) >= learnt.begin
    online, alike = (
        roll(jobs, learnt.fitted.model, learnt.raw, scored=scored, busy=known).values[question.test]
        for known in (busy, None)
    )
    assert not np.array_equal(online, alike)
    assert np.array_equal(said(learnt, question).values, online)


def test_equal_runs_give_equal_texts() -> None:
    """The same log, seed and thread give the same figures to the last digit."""
    jobs = table(mixed_jobs(300))
    texts = [
        evaluation_text(evaluate("x", jobs, replay_vectors(jobs).vectors, targets=[BY_NAME["failure"]], threads=1))
        for _ in range(2)
    ]
    assert texts[0] == texts[1]
