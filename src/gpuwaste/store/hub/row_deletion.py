"""Deletes rows of tables, such as those older than their retention; the last event's number is never reused."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuwaste.core.clock import Clock
from gpuwaste.store.database import Database
from gpuwaste.store.hub.data_inventory import INVENTORY, Retention
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.lake_database import LakeDatabase

_NUMBERED: Final = "told_events"
# Like the event of a deleted verdict: readers of the stream skip it (EventStore.page).
_EMPTIED: Final = (
    "kind = 'job.verdict', subject = 'verdict/', data = '', cluster = '', job_id = 0, run_start = 0, id = ''"
)
Days = Mapping[str, int]
"""Days by the configuration key that a retention names."""


def delete_rows(db: Database, table: str, condition: str, values: Mapping[str, Any]) -> int:
    """Delete the rows of a table that match an SQL condition; return how many. Raises StoreError.

    A lake has no sequences: its next event is numbered after the last one, so the last one is emptied, not deleted.
    """
    emptied = 0
    if table == _NUMBERED and isinstance(db, LakeDatabase):
        last = f"seq = {db.text('event_seq')} AND data <> '' AND ({condition})"
        emptied = rows_of(db, f"UPDATE {table} SET {_EMPTIED} WHERE {last}", values)  # noqa: S608 names of ours
        condition = f"seq <> {db.text('event_seq')} AND ({condition})"
    return emptied + rows_of(db, f'DELETE FROM "{table}" WHERE {condition}', values)  # noqa: S608 names of ours


def rows_of(db: Database, change: str, values: Mapping[str, Any]) -> int:
    """Execute a statement that changes rows, with the values that it names; return how many rows."""
    named = {name: value for name, value in values.items() if f"${name}" in change}
    return int(db.execute(change, named).fetchall()[0][0])


def retentions() -> Iterator[tuple[str, Retention]]:
    """Yield the tables whose old rows are deleted."""
    for table, stored in INVENTORY.items():
        if isinstance(stored.kept, Retention):
            yield table, stored.kept


def delete_old(store: HubStore, clock: Clock, days: Days) -> dict[str, int]:
    """Delete rows that are too old, table by table; return the number per table that had some. Raises StoreError."""
    now = clock.utc_s()
    deleted = {}
    for table, kept in retentions():
        condition, values = f"{kept.column} < $before", {"before": kept.before(now, days[kept.days])}
        with store.reader() as db:  # usually there are none: a lake is then not written to
            some = db.execute(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1", values).fetchall()  # noqa: S608
        if some:
            with store.writing() as db:
                deleted[table] = delete_rows(db, table, condition, values)
    return {table: rows for table, rows in deleted.items() if rows}
