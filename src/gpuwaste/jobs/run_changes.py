"""What an import brought of runs, written where they are: runs that changed with their events, details and steps.

What was judged of a run that changes is judged again. Nothing that was judged or told depends on details and steps,
which only analytics reads, so they cause neither.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuwaste.slurm.run import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import NO_ROWS, to_json
from gpuwaste.store.hub.store_changes import Times


@dataclass(frozen=True, slots=True)
class TakenRuns:
    """How many runs changed, when the first of them ended (UTC seconds, None where none has), and what was removed."""

    runs: int
    first_end: int | None
    removed: list[tuple[Any, ...]]


def take_changed(db: Database, delete: str) -> TakenRuns:
    """Write the runs of the scratch table of changed ones, with their events.

    The query `delete` removes what they replace; what it returns is `removed`.
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
    """Write the details that query jobs_detailed has found; returns the times of their runs."""
    ((detailed,),) = db.answer("jobs_detailed_count").rows
    return db.answer("jobs_details").rows if detailed else []


def take_steps(db: Database, stage: str, steps: Mapping[str, Any], *, only_known: bool = False) -> None:
    """Write the steps that query `stage` reads by its parameters `steps`, empty or without rows where there are none.

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


def judge_again(store: HubStore, db: Database, ends_of: str, parameters: Mapping[str, Any]) -> None:
    """Have the runs whose ends a query returns judged again where they are not; it may forget what was judged.

    Somebody who watches may have passed them: what was computed from the first of them on is of the past.
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
