"""Details and steps in the hub's store: merged, never a reason to judge or tell a run anew."""

from dataclasses import fields, replace
from typing import Any

import pytest

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import history_events, runs_of_id, upsert_jobs
from gpuwaste.slurm.accounting.job_record import AccountedRun, JobDetails, JobRecord, StepRecord
from gpuwaste.store.hub.hub_store import HubStore

STEP = StepRecord("0", "train", 1010, 5, 2, 1024, "COMPLETED", 0, 0)
FULL = JobDetails(1005, 7, "SchedBackfill", "Priority", "a100", "course", 2, 500, 100, 10, "a" * 64)
NEWER = JobDetails(1006, 8, "SchedMain", "", "h100", "", 3, 600, 101, 11, f"{'b' * 64},steps=5")
SUMS = {"n_steps", "energy_j", "disk_read_b", "disk_write_b"}
NAMES = [field.name for field in fields(JobDetails)]


def accounted(details: JobDetails = FULL, steps: tuple[StepRecord, ...] = (STEP,), **more: Any) -> AccountedRun:
    values: dict[str, Any] = {
        "start": 1010,
        "end": 1020,
        "state": "COMPLETED",
        "gpus": 1,
        "elapsed_s": 10,
        "user": "alice",
    } | more
    return AccountedRun("gw", 7, 1000, details=details, steps=steps, **values)


@pytest.fixture
def store() -> HubStore:
    """Return a new store."""
    return HubStore.open(":memory:", SystemClock())


def details(store: HubStore) -> JobDetails:
    with store.reader() as db:
        (row,) = db.rows("jobs_of_id", {"cluster": "gw", "job_id": 7})
    return JobDetails(**{name: row[name] for name in NAMES})


def steps(store: HubStore) -> list[tuple[Any, ...]]:
    with store.reader() as db:
        return db.execute("FROM steps ORDER BY job_id, run_start, step").fetchall()


def test_details_and_steps_are_kept(store: HubStore) -> None:
    """What accounting tells of a run is in its row, its steps in theirs; the run itself is read as ever."""
    assert upsert_jobs(store, [accounted()]) == 1
    assert details(store) == FULL
    assert steps(store) == [("gw", 7, 1010, "0", "train", 1010, 5, 2, 1024, "COMPLETED", 0, 0)]
    (run,) = runs_of_id(store, "gw", 7)
    assert type(run) is JobRecord
    assert run == JobRecord(
        "gw", 7, 1000, printed_id="7", start=1010, end=1020, state="COMPLETED", gpus=1, elapsed_s=10, user="alice"
    )


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_each_detail_is_taken_anew_and_never_forgotten(store: HubStore, name: str) -> None:
    """A newer value counts, of a sum the larger one; a source that does not tell takes nothing away."""
    upsert_jobs(store, [accounted(JobDetails())])
    assert getattr(details(store), name) is None
    for told in (FULL, NEWER, JobDetails()):
        value = getattr(told, name)
        assert upsert_jobs(store, [accounted(JobDetails(**{name: value}))]) == (value is not None)
    assert details(store) == JobDetails(**{name: getattr(NEWER, name)})
    upsert_jobs(store, [accounted(JobDetails(**{name: getattr(FULL, name)}))])
    assert getattr(details(store), name) == getattr(NEWER if name in SUMS else FULL, name)


def test_new_details_judge_and_tell_nothing_anew(store: HubStore) -> None:
    """The run's place in the file, its events and what was judged of it stay."""
    upsert_jobs(store, [accounted(JobDetails(), ()), replace(accounted(), job_id=8)])
    with store.writing() as db:
        order = db.execute("SELECT job_id FROM jobs ORDER BY rowid").fetchall()
        db.execute("INSERT INTO rules VALUES (1, 1, '{}', true, 5000)")
    events = store.counts()["events"]
    with store.watching() as changes:
        assert upsert_jobs(store, [accounted()]) == 1
    assert not changes.runs
    with store.reader() as db:
        assert db.execute("SELECT job_id FROM jobs ORDER BY rowid").fetchall() == order
        assert db.execute("SELECT judged_until FROM rules").fetchall() == [(5000,)]
        told = db.execute("SELECT flags FROM jobs WHERE job_id = 7").fetchall()
    assert (told, store.counts()["events"]) == ([("SchedBackfill",)], events)


def test_a_step_is_one_row_and_keeps_what_was_known(store: HubStore) -> None:
    """The same step again, or from a source that tells less, leaves one row with all of it."""
    upsert_jobs(store, [accounted()])
    upsert_jobs(store, [accounted(steps=(replace(STEP, tasks=None, max_rss_b=None), replace(STEP, step="1")))])
    assert [(row[3], row[7], row[8]) for row in steps(store)] == [("0", 2, 1024), ("1", 2, 1024)]


def test_a_run_without_details_has_none(store: HubStore) -> None:
    """Of a source that has no details they are unknown, not empty."""
    upsert_jobs(store, [JobRecord("gw", 7, 1000)])
    assert (details(store), steps(store)) == (JobDetails(), [])


def test_texts_of_users_are_made_fit_to_be_stored(store: HubStore) -> None:
    """A NUL and half a surrogate pair in a step's name or a constraint become escapes."""
    upsert_jobs(store, [accounted(JobDetails(constraints="a\0"), (replace(STEP, name="\ud800"),))])
    assert details(store).constraints == "a\\x00"
    assert steps(store)[0][4] == "\\ud800"


def test_the_history_stream_does_not_carry_them(store: HubStore) -> None:
    """An event is as long as before: the advisor needs none of it."""
    upsert_jobs(store, [accounted()])
    plain = HubStore.open(":memory:", SystemClock())
    upsert_jobs(plain, [accounted(JobDetails(), ())])
    told, bare = (
        [
            {name: value for name, value in event.to_json().items() if name != "at"}
            for event in history_events(found, 0, 9)
        ]
        for found in (store, plain)
    )
    assert told == bare
    assert not {*NAMES, "steps", "details"} & set(told[0]["job"])
