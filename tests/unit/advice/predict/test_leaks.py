"""No vector knows more than its submission could: checks that a planted leak does not pass."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuwaste.advice.predict.feature_context import Context
from gpuwaste.advice.predict.feature_group import Block, Feature, Group, Step, copied
from gpuwaste.advice.predict.features import GROUPS
from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.core.codec import annotated
from gpuwaste.jobs.history.job_table import GpuUse, JobTable, table_of
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.accounting.job_record import JobRecord, KnownAt
from gpuwaste.testing.histories import made_jobs, made_table

Groups = Callable[[JobTable], tuple[Group, ...]]
LATER = [f for f, _, marks in annotated(JobRecord) if KnownAt.SUBMIT not in marks]
OTHER: dict[type, Any] = {int: 7, float: 7.5, str: "FAILED", bool: True}


def ours(table: JobTable) -> tuple[Group, ...]:
    del table
    return GROUPS


def leak(values: Callable[[JobTable], NDArray[Any]]) -> Groups:
    """Return our groups with one more that reads a column of the table at the row of the submission."""

    def groups(table: JobTable) -> tuple[Group, ...]:
        column = values(table)

        def steps(context: Context, out: Block) -> Iterator[Step]:
            rows = np.searchsorted(table.submit, context.submit)
            yield copied(out[:, 0], column[rows])

        return (*GROUPS, Group("leak", "", (Feature("leak", "", "a planted leak"),), steps, per_key=False))

    return groups


def run_seconds(table: JobTable) -> NDArray[Any]:
    return table.run_s


def failures_counted_at_submission(table: JobTable) -> NDArray[Any]:
    """Failures of all jobs submitted earlier, ended or not."""
    failed = np.isin(table.outcome, (Outcome.FAILED, Outcome.OUT_OF_MEMORY))
    return np.concatenate(([0], np.cumsum(failed)[:-1]))


def later_fields_leave_their_own_vector_alone(groups: Groups, jobs: list[JobRecord], places: range) -> bool:
    """Change each field of job i that is known later than its submission; tell whether vector i stays the same."""
    use = [GpuUse(0.5, 1, 1.0, (job.end or 0) + 5) if job.gpus else None for job in jobs]
    table = table_of(jobs, use=use)
    before = replay_vectors(table, groups=groups(table)).vectors
    for place in places:
        job = jobs[place]
        changes: list[dict[str, Any]] = [
            {f.name: _other(getattr(job, f.name)) for f in LATER},
            *({f.name: _other(getattr(job, f.name))} for f in LATER),
            {"start": None}, {"end": None}, {"state": "COMPLETED"}, {"state": ""},
            {"start": None, "state": "CANCELLED"}, {"end": job.submit, "start": job.submit, "elapsed_s": 0},
        ]  # fmt: skip
        for change in changes:
            others = [*jobs[:place], replace(job, **change), *jobs[place + 1 :]]
            changed = table_of(others, use=[*use[:place], GpuUse(0.0, 4, 0.5, 0), *use[place + 1 :]])
            after = replay_vectors(changed, groups=groups(changed)).vectors
            if before[place].tobytes() != after[place].tobytes():
                return False
    return True


def the_future_leaves_the_past_alone(groups: Groups, table: JobTable, places: range) -> bool:
    """Change at random all that happens after submission i; tell whether the vectors up to i stay the same."""
    rng = np.random.default_rng(3)
    before = replay_vectors(table, groups=groups(table)).vectors
    for place in places:
        now = int(table.submit[place])
        upto = int(np.searchsorted(table.submit, now, side="right"))
        for rows in (np.arange(upto), np.concatenate((np.arange(upto), upto + rng.permutation(len(table) - upto)))):
            other = _shuffled(table.take(np.arange(len(rows))), table.take(rows), upto, now, rng)
            after = replay_vectors(other, groups=groups(other)).vectors
            if before[:upto].tobytes() != after[:upto].tobytes():
                return False
    return True


def _shuffled(held: JobTable, rows: JobTable, upto: int, now: int, rng: np.random.Generator) -> JobTable:
    """Return rows in the places of `held`: those from `upto` on as they come, and what happens after `now` made up."""
    other = replace(rows, submit=held.submit, job_id=held.job_id)
    start, end, run, outcome = other.start.copy(), other.end.copy(), other.run_s.copy(), other.outcome.copy()
    ledger, used, peak = other.ledger_at.copy(), other.used_ratio.copy(), other.max_rss_b.copy()
    late = np.arange(len(other)) >= upto
    open_ = (other.end > now) | late | (other.end == -1)
    unjudged = open_ | (ledger > now)
    waiting = (start > now) | late
    count = len(other)
    start[waiting] = np.maximum(now + rng.integers(1, 500, count), other.submit)[waiting]
    end[open_] = np.maximum(now + rng.integers(501, 9000, count), other.submit + 501)[open_]
    run[open_], outcome[open_] = rng.integers(0, 500, count)[open_], rng.integers(0, 7, count)[open_]
    peak[open_] = 1e9
    ledger[unjudged], used[unjudged] = (np.maximum(end, now) + 60)[unjudged], 0.5
    return replace(
        other, start=start, end=end, run_s=run, outcome=outcome.astype(np.uint8), ledger_at=ledger, used_ratio=used,
        max_rss_b=peak,
    )  # fmt: skip


def _other(value: Any) -> Any:
    return 7 if value is None else value + OTHER[type(value)] if not isinstance(value, str) else "FAILED"


def test_later_fields_do_not_reach_their_own_vector() -> None:
    """Every field of a job that is known later than its submission can change, its vector does not."""
    assert later_fields_leave_their_own_vector_alone(ours, made_jobs(60), range(5, 60, 11))


def test_a_planted_run_time_does_not_pass() -> None:
    """A group that reads the run time at the submission fails the check of later fields."""
    assert not later_fields_leave_their_own_vector_alone(leak(run_seconds), made_jobs(60), range(5, 60, 11))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_future_does_not_change_the_past(seed: int) -> None:
    """Dropping and permuting later jobs, and other ends of open jobs, leave all vectors up to then as they are."""
    assert the_future_leaves_the_past_alone(ours, made_table(200, seed=seed), range(3, 200, 17))


def test_a_planted_count_at_submission_does_not_pass() -> None:
    """Counting failures of jobs that have not ended yet fails the check of the future."""
    table = table_of(made_jobs(200))
    assert the_future_leaves_the_past_alone(ours, table, range(3, 200, 40))
    assert not the_future_leaves_the_past_alone(leak(failures_counted_at_submission), table, range(3, 200, 40))
