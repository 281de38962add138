"""Which runs of a printed id are meant: ids come again, runs are requeued, tasks of an array end one after another."""

from dataclasses import replace

from gpuwaste.ledger.reports.document_queries import picked_runs
from gpuwaste.ledger.reports.report_question import JobQuestion
from gpuwaste.slurm.accounting.job_record import JobRecord

T0 = 1_700_000_000


def run(job: int, submit: int, start: int, end: int | None) -> JobRecord:
    """Return a task of array 3, its times as seconds after T0."""
    ended = None if end is None else T0 + end
    return JobRecord("gw", job, T0 + submit, start=T0 + start, end=ended, array_job_id=3, user="alice")


def test_an_array_s_summary_has_the_last_run_of_each_task_of_this_array() -> None:
    """Tasks that ended long ago belong to it, one that was requeued once; an array of the same id before does not."""
    before = [run(3, -9000, -8000, -7000), run(4, -9000, -8000, -6000)]
    tasks = [run(3, 0, 10, 100), run(4, 0, 10, 50), run(4, 50, 60, 1000), run(5, 0, 20, 200)]
    found = picked_runs([*before, *tasks], JobQuestion(ended_since=T0 + 990))
    assert sorted((r.job_id, r.start) for r in found) == [(3, T0 + 10), (4, T0 + 60), (5, T0 + 20)]


def test_a_run_whose_end_is_not_known_yet_is_the_last_one() -> None:
    """Accounting tells an end late: the run that goes on is meant, not the one of the same id that ended before."""
    runs = [run(3, -9000, -8000, -7000), run(3, 0, 10, None)]
    assert picked_runs(runs, JobQuestion(ended_since=T0 + 5000)) == [runs[1]]


def test_clusters_are_kept_apart() -> None:
    """The same id on two clusters of one hub."""
    here = run(3, 0, 10, 100)
    there = replace(here, cluster="other")
    assert picked_runs([here, there], JobQuestion(cluster="other")) == [there]
    assert picked_runs([here, there], JobQuestion(start=T0 + 10)) == [here, there]
    assert picked_runs([here, there], JobQuestion(start=T0 + 11)) == []
