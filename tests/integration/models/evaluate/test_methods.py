"""The plain methods against cases that were worked by hand."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from tests.integration.models.evaluate.logs import job, table

from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.models.evaluate.method import EvaluationTask, MethodAnswer, all_methods
from gpuwaste.models.training_rows import HistorySplit
from gpuwaste.slurm.accounting.job_record import JobRecord


def ask(name: str, target: str, jobs: Sequence[JobRecord], learn: int, test: int) -> MethodAnswer:
    """Ask a method of the rows from `test` on; the first `learn` rows are learnt from, those between validate."""
    rows = np.arange(len(jobs))
    split = HistorySplit(rows[:learn], rows[learn:test], rows[test:])
    vectors = np.zeros((len(jobs), 1), dtype=np.float32)
    method = next(m for m in all_methods() if m.name == name)
    return method.answer(EvaluationTask(BY_NAME[target], table(jobs), vectors, split))


def test_majority_says_the_share_of_the_first_part() -> None:
    """One failure of four in the first part is a quarter for every test row, which is no failure by the threshold."""
    states = ["FAILED", "COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "FAILED"]
    jobs = [job(i, "a", 1000 * (i + 1), 10, state) for i, state in enumerate(states)]
    answer = ask("majority", "failure", jobs, 4, 4)
    assert answer.values.tolist() == [0.25, 0.25]
    assert answer.threshold == 0.5


def test_last_outcome_is_that_of_the_last_end_not_of_the_last_submission() -> None:
    """A failed job that still runs does not count; ended in the second of the submission it does; cancelled is none."""
    jobs = [
        job(1, "a", 1000, 10),
        job(2, "a", 2000, 3000, "FAILED"),  # ends at 5000
        job(3, "a", 2500, 100, "CANCELLED"),
        job(4, "a", 4999, 10_000),
        job(5, "a", 5000, 10_000),
        job(6, "b", 6000, 10_000),
    ]
    answer = ask("last_outcome", "failure", jobs, 1, 3)
    assert answer.values.tolist() == [0.0, 1.0, 0.0]  # b has no end yet: the larger class of the first part


def test_weighted_rate_moves_a_fifth_of_the_way_at_each_end() -> None:
    """From a first rate of one half: 0.5 + 0.2 * 0.5 after a failure, and 0.8 of that after a success."""
    jobs = [
        job(1, "x", 1000, 10, "FAILED"),
        job(2, "y", 1100, 10),
        job(3, "a", 2000, 10, "FAILED"),
        job(4, "a", 3000, 10),
        job(5, "a", 4000, 10),
    ]
    answer = ask("weighted_rate", "failure", jobs, 2, 2)
    assert answer.values == pytest.approx([0.5, 0.6, 0.48])


def test_last_two_is_tsafrirs_mean_bounded_by_the_request() -> None:
    """With no end the request, with one end that run, with two their mean, and never more than was asked for."""
    jobs = [
        job(1, "a", 1000, 100),
        job(2, "a", 1050, 900),
        job(3, "a", 1500, 9000),
        job(4, "a", 2000, 50),
        job(5, "a", 3000, 50, limit=200),
        job(6, "b", 4000, 50, limit=777),
    ]
    answer = ask("last_two", "walltime", jobs, 0, 1)
    assert answer.values[:, 0].tolist() == [3600.0, 100.0, 500.0, 200.0, 777.0]
    assert answer.levels == ()


def test_the_mean_of_two_runs_counts_the_newest_two() -> None:
    """After three ends the oldest is forgotten."""
    jobs = [job(i, "a", 1000 * i, run) for i, run in ((1, 500), (2, 100), (3, 300), (4, 1))]
    answer = ask("last_two", "walltime", jobs, 0, 3)
    assert answer.values.tolist() == [[200.0]]


def test_users_request_without_a_limit_is_no_limit() -> None:
    """A job that did not ask for a time is never under-estimated by its request."""
    jobs = [job(1, "a", 1000, 10), job(2, "a", 2000, 10, limit=60), job(3, "a", 3000, 10)]
    without = table(jobs)
    without.limit_s[2] = math.nan
    method = next(m for m in all_methods() if m.name == "user_request")
    rows = np.arange(3)
    split = HistorySplit(rows[:1], rows[:0], rows[1:])
    question = EvaluationTask(BY_NAME["walltime"], without, np.zeros((3, 1), np.float32), split)
    assert method.answer(question).values[:, 0].tolist() == [60.0, math.inf]


def test_every_method_of_a_kind_is_there_and_ours_is_called_model() -> None:
    """A file in the folder is a method; those that look into the future have to be asked for."""
    names = {method.name for method in all_methods()}
    assert {"majority", "last_outcome", "weighted_rate", "request_fields", "model"} <= names
    assert {"user_request", "last_two", "raw_quantiles"} <= names
    assert {m.name for m in all_methods(after_run=True)} - names == {"jfp"}
