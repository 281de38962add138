"""Nothing of the test part is known before it could have been."""

import random
from dataclasses import replace

import numpy as np
import pytest
from tests.integration.models.evaluate.logs import HOUR, mixed_jobs, table

from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.models.evaluate.log_evaluation import Evaluation
from gpuwaste.models.evaluate.method import EvaluationTask, all_methods, learn
from gpuwaste.models.evaluate.methods.jfp import after_run
from gpuwaste.models.training_rows import split_by_time
from gpuwaste.slurm.accounting.job_record import JobRecord

pytestmark = pytest.mark.long

JOBS = mixed_jobs()
CUT = JOBS[510].submit  # an instant in the test part


def question(jobs: list[JobRecord], target: str) -> EvaluationTask:
    """Return the question of a log with its own vectors."""
    known = table(jobs)
    return EvaluationTask(BY_NAME[target], known, replay_vectors(known).vectors, split_by_time(known), threads=1)


def changed(job: JobRecord) -> JobRecord:
    """Return a run that had not ended by the cut with another outcome and another, still later, end."""
    if job.end is None or job.end <= CUT:
        return job
    run = CUT + 7 * (job.job_id % 50) + 1 - job.submit if job.submit <= CUT else (job.elapsed_s or 0) // 2 + 1
    state = "COMPLETED" if job.state == "FAILED" else "FAILED"
    return replace(job, end=job.submit + run, elapsed_s=run, state=state)


@pytest.mark.parametrize("target", ["failure", "walltime"])
def test_what_ends_after_a_submission_changes_no_prediction_at_it(target: str) -> None:
    """Other outcomes and run times of all that had not ended by an instant leave every earlier prediction as it was."""
    other = [changed(job) for job in JOBS]
    assert sum(a != b for a, b in zip(JOBS, other, strict=True)) > 80
    first, second = question(JOBS, target), question(other, target)
    for method in (m for m in all_methods() if m.supports(BY_NAME[target])):
        one, two = method.answer(first), method.answer(second)
        early = first.table.submit[first.test] <= CUT
        assert early.sum() > 50
        assert np.array_equal(one.values[early], two.values[early]), method.name
        assert one.threshold == two.threshold, method.name


def test_labels_of_test_rows_reach_neither_trees_nor_thresholds() -> None:
    """With the same vectors, shuffled labels of the test part change nothing that was learnt."""
    known = table(JOBS)
    vectors, split = replay_vectors(known).vectors, split_by_time(known)
    shuffled = known.outcome.copy()
    rows = split.test.tolist()
    random.Random(3).shuffle(rows)
    shuffled[split.test] = known.outcome[rows]
    assert (shuffled != known.outcome).any()
    target = BY_NAME["failure"]
    one = learn(target, known, vectors, split, threads=1)
    two = learn(target, replace(known, outcome=shuffled), vectors, split, threads=1)
    assert np.array_equal(one.raw, two.raw, equal_nan=True)
    assert one.fitted.model.thresholds == two.fitted.model.thresholds
    assert one.fitted.model.calibration == two.fitted.model.calibration


def test_the_run_time_helps_the_protocol_that_may_see_it_alone(evaluated: Evaluation) -> None:
    """Where failing follows from the run time, the JFP column is nearly perfect and ours is no better than chance."""
    results = evaluated.results["failure"]
    rate = results["model"].figures["base_rate"].value
    assert results["jfp"].after_run
    assert results["jfp"].figures["average_precision"].value > 0.95
    assert abs(results["model"].figures["average_precision"].value - rate) < 0.2


def test_what_the_protocol_sees_is_known_after_the_run() -> None:
    """Run seconds, their share of the limit, the wait, the peak memory."""
    facts = after_run(table([JOBS[0]]))
    run = JOBS[0].elapsed_s or 0
    assert facts[0, :3].tolist() == pytest.approx([run, run / HOUR, 0.0])
    assert np.isnan(facts[0, 3])
