"""What only analytics reads of runs: their details, written where the runs are, and their steps.

Nothing that was judged or told depends on them, so they cause neither.
"""

from collections.abc import Mapping
from typing import Any, Final

from gpuwaste.store.database import Database
from gpuwaste.store.hub.json_rows import NO_ROWS
from gpuwaste.store.hub.touched import Times

STAGES: Final = ("jobs_stage_create", "steps_stage_create")
"""Queries that make the scratch tables of who writes."""


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
    db.run("steps_stage_clear")
    db.run(stage, steps)
    if only_known:
        db.run("steps_stage_known")
    for query in ("steps_changed", "steps_delete_old", "steps_insert"):
        db.run(query).fetchall()
