"""The balance of a store that no hub counts, by several processes and stored for the view: a day needs no other."""

from functools import partial
from typing import Final

from gpuwaste.core.child_process import map_in_children
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.ledger.balance.balance_store import StoredHours, replace_balance
from gpuwaste.ledger.balance.reads import devices_of
from gpuwaste.ledger.balance.window import parts_of
from gpuwaste.store.database import Database

_PROCESSES: Final = 2
_WORTH_S: Final = 4 * DAY_S  # less takes no longer than the start of processes


def count_ahead(db: Database, cluster: str, start: int, end: int, now: int) -> None:
    """Store the balance of a cluster's GPUs in the full hours of [start, end), UTC seconds, as known at `now`.

    Raises StoreError, ChildEnded.
    """
    since, until = -(-start // HOUR_S) * HOUR_S, min(end, now) // HOUR_S * HOUR_S
    if until - since < _WORTH_S or devices_of(db, cluster) != "GPUs":
        return
    mapped = partial(map_in_children, processes=_PROCESSES)
    for begin, finish, sums in parts_of(db, cluster, (since, until), now, mapped=mapped):
        with db.writing():
            replace_balance(db, cluster, StoredHours(begin, finish), sums)
