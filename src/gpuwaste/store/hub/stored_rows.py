"""Deleting rows of a table: the number of the last event is never given again."""

from collections.abc import Mapping
from typing import Any, Final

from gpuwaste.store.database import Database
from gpuwaste.store.lake_database import LakeDatabase

_NUMBERED: Final = "told_events"
# As the event of a verdict that is deleted: whoever reads the stream passes over it (EventStore.page).
_EMPTIED: Final = (
    "kind = 'job.verdict', subject = 'verdict/', data = '', cluster = '', job_id = 0, run_start = 0, id = ''"
)


def delete_rows(db: Database, table: str, condition: str, values: Mapping[str, Any]) -> int:
    """Delete the rows of a table for which a condition of SQL holds; returns how many. Raises StoreError.

    A lake has no sequences: its next event is numbered after the last one, so that one is emptied and not deleted.
    """
    emptied = 0
    if table == _NUMBERED and isinstance(db, LakeDatabase):
        last = f"seq = {db.text('event_seq')} AND data <> '' AND ({condition})"
        emptied = rows_of(db, f"UPDATE {table} SET {_EMPTIED} WHERE {last}", values)  # noqa: S608 names of ours
        condition = f"seq <> {db.text('event_seq')} AND ({condition})"
    return emptied + rows_of(db, f'DELETE FROM "{table}" WHERE {condition}', values)  # noqa: S608 names of ours


def rows_of(db: Database, change: str, values: Mapping[str, Any]) -> int:
    """Execute a statement that changes rows, with those of the values that it names; returns how many rows."""
    named = {name: value for name, value in values.items() if f"${name}" in change}
    return int(db.execute(change, named).fetchall()[0][0])
