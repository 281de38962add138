"""The machine that a look read, into its store, and the balance of the machine."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.machine import machine_store
from gpuwaste.jobs.machine.machine_files import store_model
from gpuwaste.ledger.balance.count_ahead import count_ahead
from gpuwaste.slurm.clients.kept_commands import ReadMachine
from gpuwaste.slurm.site.cluster_model import NEVER
from gpuwaste.store.database import Database
from gpuwaste.views.machine_doubts import machine_doubts
from gpuwaste.views.view_query import Window

_DAYS: Final = 30
LEFT_OUT: Final = "The balance of the machine needs the jobs of all users: it is left out."


def store_machine(db: Database, read: ReadMachine) -> None:
    """Store what was read of the machine. Raises StoreError."""
    cluster, since = read.model.name, read.since
    with db.writing():
        store_model(db, cluster, read.model)
        if read.outages is not None:
            machine_store.replace_outages(db, cluster, read.outages, since)
            machine_store.set_complete(db, "machine_events", cluster, since, NEVER)
        if read.reservations is not None:
            machine_store.replace_reservations(db, cluster, read.reservations, since)
            machine_store.set_complete(db, "machine_reservations", cluster, since, NEVER)


def balance_start(window: Window, start: int | None) -> int:
    """Return the start of the balance's window: what was requested, or the last days, as it takes longest."""
    return window.start if start is not None else max(window.start, window.end - _DAYS * DAY_S)


def count_balance(db: Database, clusters: Sequence[str], window: Window) -> list[str]:
    """Count the balance for the view; return what is assumed, a sentence each. Raises StoreError, ChildEnded."""
    for cluster in clusters:
        count_ahead(db, cluster, window.start, window.end, window.now)
    return [doubt for cluster in clusters for doubt in machine_doubts(db, cluster, window.start)]
