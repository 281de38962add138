"""Splits by time."""

import numpy as np
import pytest

from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.job_table import JobTable, table_of
from gpuwaste.models.training_rows import folds_by_time, split_by_time
from gpuwaste.slurm.accounting.job_record import JobRecord


def table(n: int, run_s: int = 5, every_s: int = 10) -> JobTable:
    jobs = [
        JobRecord(
            "c", i + 1, i * every_s, user=f"u{i % 3}", state="COMPLETED", start=i * every_s, end=i * every_s + run_s,
            elapsed_s=run_s,
        )
        for i in range(n)
    ]  # fmt: skip
    return table_of(jobs)


def test_the_parts_follow_each_other_and_nothing_is_learnt_from_the_future() -> None:
    """60, 10 and 30 % in order of submission; a run that ended after the next part began is in no earlier part."""
    jobs = table(1000, run_s=25)
    split = split_by_time(jobs)
    assert split.train.max() < split.validation.min() <= split.validation.max() < split.test.min()
    assert (len(split.test), split.test[0], split.test[-1]) == (300, 700, 999)
    assert jobs.end[split.train].max() <= jobs.submit[600]
    assert jobs.end[split.validation].max() <= jobs.submit[700]
    assert len(split.train) == 598  # the last two ended after the 601st submission


def test_folds_grow_and_judge_what_follows() -> None:
    """Each fold learns from the rows before its cut alone, and the folds judge every row behind the first cut once."""
    jobs = table(120)
    judged = []
    for learn, judge in folds_by_time(jobs, np.arange(100), 4):
        assert learn.max() < judge.min()
        assert jobs.end[learn].max() <= jobs.submit[judge[0]]
        judged += judge.tolist()
    assert judged == list(range(20, 100))


def test_too_few_jobs_are_refused() -> None:
    """Below the minimum there is one line with the numbers."""
    with pytest.raises(NoDataError, match="10 jobs are too few"):
        split_by_time(table(10))
