"""What only analytics reads of runs: their details, written where the runs are, and their steps.

Nothing that was judged or told depends on them, so they cause neither.
"""

from collections.abc import Mapping
from typing import Any, Final

from gpuwaste.store.database import Database
from gpuwaste.store.hub.json_rows import NO_ROWS

STAGES: Final = ("jobs_stage_create", "steps_stage_create")
"""Queries that make the scratch tables of who writes."""


def take_details(db: Database, stage: str, steps: Mapping[str, Any]) -> int:
    """Write the details that query jobs_detailed has found, and the steps that query `stage` reads.

    `steps` are its parameters, empty or without rows where there is none. Returns how many runs had new details.
    """
    ((detailed,),) = db.answer("jobs_detailed_count").rows
    if detailed:
        db.run("jobs_details").fetchall()
    if steps and steps.get("rows") != NO_ROWS:
        db.run("steps_stage_clear")
        db.run(stage, steps)
        for query in ("steps_changed", "steps_delete_old", "steps_insert"):
            db.run(query).fetchall()
    return int(detailed)
