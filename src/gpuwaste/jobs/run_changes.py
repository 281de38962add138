"""Runs as rows of the tables jobs and steps, and writing the results of an import: changed runs, details, steps.

A run that changes is judged again, and gets its events; so does a run of whose GPUs accounting has something new. No
judgement or event depends on details and steps, which only analytics reads, so they cause neither.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any, Final

from gpuwaste.core.text import storable
from gpuwaste.slurm.accounting.accounted_use import AccountedUse
from gpuwaste.slurm.accounting.job_record import AccountedRun, JobDetails, JobRecord, StepRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import NO_ROWS, Columns, to_json
from gpuwaste.store.hub.store_changes import Times

_DETAIL_COLUMNS: Final = Columns(JobDetails)
JOB_COLUMNS: Final = Columns(JobRecord, {"run_start": "BIGINT", **_DETAIL_COLUMNS.types})
_NO_DETAILS: Final = dict.fromkeys(_DETAIL_COLUMNS.types)
_KEY: Final = {"cluster": "VARCHAR", "job_id": "BIGINT", "run_start": "BIGINT"}
STEP_COLUMNS: Final = Columns(StepRecord, _KEY)
USE_COLUMNS: Final = Columns(AccountedUse, _KEY)
_JOB_VALUES: Final = itemgetter(*(f.name for f in fields(JobRecord)))


def job_row(job: JobRecord) -> dict[str, Any]:
    """Return the columns of table jobs."""
    row = JOB_COLUMNS.row(job)
    row["run_start"] = job.submit if job.start is None else job.start
    row["printed_id"] = row["printed_id"] or str(job.job_id)
    return row | (_DETAIL_COLUMNS.row(job.details) if isinstance(job, AccountedRun) else _NO_DETAILS)


def step_rows(jobs: Iterable[JobRecord]) -> Iterator[dict[str, Any]]:
    """Yield the columns of table steps for the steps of some runs."""
    for job in jobs:
        if isinstance(job, AccountedRun) and job.steps:
            run = _key_row(job)
            yield from (STEP_COLUMNS.row(step) | run for step in job.steps)


def use_rows(jobs: Iterable[JobRecord]) -> Iterator[dict[str, Any]]:
    """Yield the columns of table accounted_use for some runs."""
    for job in jobs:
        if isinstance(job, AccountedRun) and job.uses:
            run = _key_row(job)
            yield from (USE_COLUMNS.row(use) | run for use in job.uses)


def _key_row(job: JobRecord) -> dict[str, Any]:
    key = job.run_key
    return {"cluster": storable(key.cluster), "job_id": key.job_id, "run_start": key.start}


def job_record(row: Mapping[str, Any]) -> JobRecord:
    """Return the JobRecord of a row of table jobs."""
    return JobRecord(*_JOB_VALUES(row))


@dataclass(frozen=True, slots=True)
class TakenRuns:
    """The number of changed runs, the end of the first to end (UTC seconds, None if none has), and what was removed."""

    runs: int
    first_end: int | None
    removed: list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class TakenUses:
    """The runs of whose GPUs accounting has something new, and the end of the first of them to end, UTC seconds."""

    runs: Sequence[RunKey]
    first_end: int | None


def take_changed(db: Database, delete: str) -> TakenRuns:
    """Write the runs in the scratch table of changed runs, with their events.

    The query `delete` removes what they replace; its result is `removed`.
    """
    ((changed, first_end),) = db.answer("jobs_changed_count").rows
    if not changed:
        return TakenRuns(0, first_end, [])
    db.run("jobs_events")
    if db.rows("jobs_other_user"):
        db.run("days_reassign")
    forgotten = db.run("judged_forget_jobs").fetchall()
    if forgotten:
        db.run("summed_days_back", {"end": min(end for (end,) in forgotten)})
    db.run("judged_back_jobs")
    removed = db.answer(delete).rows
    db.run("jobs_insert")
    return TakenRuns(changed, first_end, removed)


def take_details(db: Database) -> list[Times]:
    """Write the details that query jobs_detailed has found; return the times of their runs."""
    ((detailed,),) = db.answer("jobs_detailed_count").rows
    return db.answer("jobs_details").rows if detailed else []


def take_steps(db: Database, stage: str, steps: Mapping[str, Any], *, only_known: bool = False) -> None:
    """Write the steps that query `stage` reads with its parameters `steps`, empty or without rows where there are none.

    `only_known` leaves out those of runs that query jobs_known has not found.
    """
    if not steps or steps.get("rows") == NO_ROWS:
        return
    db.run("steps_stage_create")
    db.run(stage, steps)
    if only_known:
        db.run("steps_stage_known")
    for query in ("steps_changed", "steps_delete_old", "steps_insert"):
        db.run(query).fetchall()


def take_uses(db: Database, stage: str, uses: Mapping[str, Any], now: int, *, only_known: bool = False) -> TakenUses:
    """Write what accounting has of the use of GPUs, as `take_steps` does steps, after the runs themselves.

    A run that is otherwise as the store holds it is judged again, and gets an event `ledger` at `now`.
    """
    if not uses or uses.get("rows") == NO_ROWS:
        return TakenUses((), None)
    db.run("uses_stage_create")
    db.run(stage, uses)
    if only_known:
        db.run("uses_stage_known")
    db.run("uses_changed")
    told = db.rows("uses_told")
    for query in ("uses_delete_old", "uses_insert"):
        db.run(query).fetchall()
    if not told:
        return TakenUses((), None)
    first = min(row["end"] for row in told)
    db.run("judged_forget_uses").fetchall()
    db.run("judged_back", {"end": first})
    db.run("summed_days_back", {"end": first})
    runs = sorted(RunKey(row["cluster"], row["job_id"], row["run_start"]) for row in told)
    add_events(db, "ledger", runs, now)
    return TakenUses(runs, first)


def judge_again(store: HubStore, db: Database, ends_of: str, parameters: Mapping[str, Any]) -> None:
    """Mark the runs whose ends a query returns to be judged again; the query may delete judgements.

    Watchers may already be past them: results from the first of these ends on are out of date.
    """
    ends = db.run(ends_of, parameters).fetchall()
    if ends:
        first = min(end for (end,) in ends)
        db.run("judged_back", {"end": first})
        db.run("summed_days_back", {"end": first})
        store.note_changes((), first)


def add_events(db: Database, kind: str, runs: Iterable[RunKey], now: int) -> None:
    """Append an event of a kind for each of some runs to the history stream."""
    rows = [{"kind": kind, "cluster": r.cluster, "job_id": r.job_id, "run_start": r.start, "at_utc": now} for r in runs]
    if rows:
        db.run("events_add", {"rows": to_json(rows)})
