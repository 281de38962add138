"""The stored balance: sums by hour in the tables balance_hours and balance_blockers.

Marks `balance_from:CLUSTER` and `balance:CLUSTER` are the hours from which and before which it is stored.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from gpuwaste.ledger.balance.types import BalanceSums, HourSum
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore, mark_of
from gpuwaste.store.hub.json_rows import to_json


class StoredHours(NamedTuple):
    """The hours [since, until), UTC seconds, whose balance is stored; equal where none is."""

    since: int
    until: int


NONE_STORED: Final = StoredHours(0, 0)


def stored_hours(db: Database, cluster: str) -> StoredHours:
    """Return which hours of a cluster are stored. Raises StoreError."""
    since, until = mark_of(db, f"balance_from:{cluster}"), mark_of(db, f"balance:{cluster}")
    return NONE_STORED if since is None or until is None else StoredHours(since, until)


def store_balance(store: HubStore, cluster: str, hours: StoredHours, sums: BalanceSums) -> None:
    """Replace the balance of full hours, which are next to those that are stored or among them. Raises StoreError."""
    with store.writing() as db:
        replace_balance(db, cluster, hours, sums)


def replace_balance(db: Database, cluster: str, hours: StoredHours, sums: BalanceSums) -> None:
    """Do the same; the caller holds the transaction. Raises StoreError."""
    window = {"cluster": cluster, "since": hours.since, "until": hours.until}
    known = stored_hours(db, cluster)
    db.run("balance_hours_clear", window).fetchall()
    db.run("balance_blockers_clear", window).fetchall()
    _add(db, "balance_hours_add", cluster, _hours(sums, hours))
    _add(db, "balance_blockers_add", cluster, _blockers(sums, hours))
    since = hours.since if known.since == known.until else min(known.since, hours.since)
    _set_mark(db, f"balance_from:{cluster}", since)
    _set_mark(db, f"balance:{cluster}", max(known.until, hours.until))


def _add(db: Database, query: str, cluster: str, rows: Sequence[Mapping[str, int | str]]) -> None:
    if rows:
        db.run(query, {"cluster": cluster, "rows": to_json(rows)}).fetchall()


def _set_mark(db: Database, key: str, value: int) -> None:
    db.run("mark_set", {"key": key, "value": value}).fetchall()


def _hours(sums: BalanceSums, hours: StoredHours) -> list[Mapping[str, int | str]]:
    return [
        {
            "hour_utc": place.hour,
            **_named(place),
            "gpu_s": sums.seconds.get(place, 0),
            "estimated_s": sums.estimated.get(place, 0),
            "over_s": sums.over.get(place, 0),
        }
        for place in sorted(sums.seconds.keys() | sums.over.keys())
        if hours.since <= place.hour < hours.until
    ]


def _named(place: HourSum) -> Mapping[str, str]:
    return {"partitions": place.kind.partitions, "gpu_type": place.kind.gpu_type, "class": place.of.value}


def _blockers(sums: BalanceSums, hours: StoredHours) -> list[Mapping[str, int | str]]:
    return [
        {
            "hour_utc": place.hour,
            "class": place.of.value,
            "job_id": place.run[0],
            "run_start": place.run[1],
            "node": place.node,
            "gpu_s": gpu_s,
        }
        for place, gpu_s in sorted(sums.blocked.items())
        if hours.since <= place.hour < hours.until
    ]
