"""What views say of accounting's details: which scheduler started a run, its steps, its priority."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from tests.unit.views.sites import DAY, MONTH, document, fact, job

from gpuwaste.show.chart import Bins
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.slurm.accounting.job_record import AccountedRun, JobDetails, JobRecord, StepRecord

WEEK = (MONTH, MONTH + 7 * DAY)


def accounted(number: int, details: JobDetails, steps: Sequence[StepRecord] = (), **more: Any) -> AccountedRun:
    """Return a run with what accounting tells of it."""
    plain = job(number, **more)
    values = {field.name: getattr(plain, field.name) for field in fields(JobRecord)}
    return AccountedRun(**values, details=details, steps=tuple(steps))


def with_flags(flags: Sequence[str | None], **more: Any) -> list[JobRecord]:
    """Return a run for each of the flags."""
    return [accounted(number, JobDetails(flags=one), **more) for number, one in enumerate(flags, 1)]


def panels(found: ViewDocument) -> list[tuple[str, int]]:
    """Return the panels of the first chart with their counts."""
    chart = found.charts[0]
    assert isinstance(chart, Bins)
    return [(layer.name, sum(layer.counts)) for layer in chart.layers]


def test_backfilled_jobs_are_marked() -> None:
    """Two of four jobs were backfilled: a share, the use of their limits apart, and a panel of the chart for each."""
    runs = with_flags(["StartReceived,SchedBackfill", "SchedBackfill", "SchedMain", "SchedSubmit"])
    found = document(runs, "limits", WEEK)
    assert fact(found, "backfilled_share") == 0.5
    assert fact(found, "backfilled_used_share") == 0.5
    assert panels(found) == [
        ("main scheduler or at submission", 2),
        ("backfilled", 2),
    ]
    assert any("backfill scheduler started 50 %" in sentence for sentence in found.narrative)


def test_flags_that_name_no_scheduler_are_not_known() -> None:
    """Of flags that are missing, or that name no scheduler, a note gives the number; the share is of the others."""
    found = document(with_flags([None, "StartReceived", "", "SchedBackfill"]), "limits", WEEK)
    assert fact(found, "backfilled_share") == 1.0
    assert any("Accounting lacks the scheduling flag for 3 of 4 jobs" in note for note in found.notes)
    assert sum(count for _, count in panels(found)) == 4


def test_without_flags_nothing_is_said_of_backfill() -> None:
    """A log without flags: no share, no sentence, and a note that says why."""
    found = document([job(1), job(2)], "limits", WEEK)
    assert "backfilled_share" not in {entry.id for entry in found.facts}
    assert not any("backfill" in sentence for sentence in found.narrative)
    assert any("Accounting lacks the scheduling flag for all 2 jobs" in note for note in found.notes)


def step(name: str, start: int | None) -> StepRecord:
    """Return a step of a minute."""
    return StepRecord(name, "train", start, 60, 1, None, "COMPLETED", 0, 0)


def test_steps_are_counted_by_the_day_of_their_start() -> None:
    """Three steps of srun on two days; batch, one before the window and one without a start do not count."""
    steps = [step("batch", MONTH), step("0", MONTH + 60), step("1", MONTH + DAY - 1), step("2", MONTH + DAY)]
    run = accounted(1, JobDetails(n_steps=5), [*steps, step("3", MONTH - 1), step("4", None)])
    found = document([run, accounted(2, JobDetails(n_steps=0))], "jobs", WEEK)
    place = [column.name for column in found.columns].index("steps")
    assert [row[place] for row in found.rows] == [2, 1, 0, 0, 0, 0, 0]
    assert fact(found, "steps") == 3
    assert found.charts[-1].title == "Steps of jobs"


def test_steps_that_accounting_did_not_tell_are_not_known() -> None:
    """A log without steps: the column is not known, not 0, no chart, and a note says so."""
    found = document([job(1)], "jobs", WEEK)
    place = [column.name for column in found.columns].index("steps")
    assert {row[place] for row in found.rows} == {None}
    assert "steps" not in {entry.id for entry in found.facts}
    assert any(note.startswith("Steps are unknown") for note in found.notes)


def test_priority_is_compared_with_waits() -> None:
    """Ten jobs of low priority waited an hour, ten of high priority not at all: both medians, and a row for each."""
    low = [accounted(n, JobDetails(priority=1000), start=MONTH + 3600, end=MONTH + 7200) for n in range(1, 11)]
    high = [accounted(n, JobDetails(priority=50_000), start=MONTH, end=MONTH + 60) for n in range(11, 21)]
    found = document([*low, *high], "priority", WEEK)
    assert (fact(found, "low_priority"), fact(found, "high_priority")) == (1334, 42170)
    assert fact(found, "high_p50_s") == 0
    assert 3600 <= fact(found, "low_p50_s") <= 3600 * 10 ** (1 / 8)
    assert [row[:3] for row in found.rows] == [[1000, 1334, 10], [42170, 56235, 10]]
    assert panels(found) == [("jobs", 20)]


def test_a_log_without_priority_says_so() -> None:
    """No rows, no sentence, and a note; one priority for all has no two ends to compare."""
    found = document([job(1)], "priority", WEEK)
    assert not found.rows
    assert any("no priority" in note for note in found.notes)
    same = document([accounted(1, JobDetails(priority=0)), accounted(2, JobDetails(priority=0))], "priority", WEEK)
    assert [row[:3] for row in same.rows] == [[0, 2, 2]]
    assert not same.narrative
