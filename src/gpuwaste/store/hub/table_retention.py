"""Deletes the rows of each table that are older than its retention, as the inventory declares it."""

from collections.abc import Iterator, Mapping

from gpuwaste.core.clock import Clock
from gpuwaste.store.hub.data_inventory import INVENTORY, Retention
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.stored_rows import delete_rows

Days = Mapping[str, int]
"""The days of each key of the configuration that a retention names."""


def retentions() -> Iterator[tuple[str, Retention]]:
    """Yield the tables of which old rows are deleted."""
    for table, stored in INVENTORY.items():
        if isinstance(stored.kept, Retention):
            yield table, stored.kept


def delete_old(store: HubStore, clock: Clock, days: Days) -> dict[str, int]:
    """Delete what is too old, table by table; returns the rows of each table that had some. Raises StoreError."""
    now = clock.utc_us() // 1_000_000
    deleted = {}
    for table, kept in retentions():
        condition, values = f"{kept.column} < $before", {"before": kept.before(now, days[kept.days])}
        with store.reader() as db:  # most often there is nothing: a lake is then not written to
            some = db.execute(f"SELECT 1 FROM {table} WHERE {condition} LIMIT 1", values).fetchall()  # noqa: S608
        if some:
            with store.writing() as db:
                deleted[table] = delete_rows(db, table, condition, values)
    return {table: rows for table, rows in deleted.items() if rows}
