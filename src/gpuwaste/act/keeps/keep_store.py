"""KeepStore: the keeps in a hub's store, each with its event; as thread-safe as the store."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.act.keeps.keep_budget import KeepsSpent
from gpuwaste.act.keeps.keep_types import KeepRow
from gpuwaste.core.clock import Clock
from gpuwaste.core.scope import ClusterAccount, account_rows
from gpuwaste.core.text import storable
from gpuwaste.core.units import WEEK_S
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.event_store import append_told
from gpuwaste.jobs.events.kinds.job import JobKept
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

_COLUMNS: Final = {"start": "run_start", "at": "at_utc", "since": "since_utc", "until": "until_utc"}
_NAMES: Final = {column: name for name, column in _COLUMNS.items()}
_TEXTS: Final = ("cluster", "printed_id", "user", "account", "asked_by", "reason")


@dataclass(frozen=True, slots=True)
class KeepPick:
    """Which keeps a list has: None is any. `reader` and `accounts` limit it to what a person may see."""

    limit: int
    user: str | None = None
    active: bool | None = None
    reader: str | None = None
    accounts: Collection[ClusterAccount] | None = None


class KeepStore:
    """Raises StoreError."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def add(self, keeps: Sequence[KeepRow]) -> None:
        """Store keeps, in one transaction with their events."""
        rows = [_columns(one) for one in keeps]
        with self._store.writing() as db:
            db.run("keeps_add", {"rows": to_json(rows)}).fetchall()
            append_told(db, [_event(one) for one in keeps], self.now())

    def since(self, instant: int) -> list[KeepRow]:
        """Return the keeps that are active, or ended after an instant, UTC seconds; the last to end comes last."""
        with self._store.reader() as db:
            return [_row(row) for row in db.rows("keeps_since", {"since": instant})]

    def of_run(self, run: RunKey, now: int) -> KeepRow | None:
        """Return the keep of a run that is active now and ends last; None: it is not kept."""
        values = {"cluster": run.cluster, "job_id": run.job_id, "run_start": run.start, "now": now}
        with self._store.reader() as db:
            rows = db.rows("keeps_of_run", values)
        return _row(rows[0]) if rows else None

    def spent(self, person: str, now: int) -> KeepsSpent:
        """Return what a person has used of the budget in the last seven days."""
        with self._store.reader() as db:
            row = db.rows("keeps_spent", {"person": storable(person), "since": now - WEEK_S})[0]
        return KeepsSpent(int(row["seconds"]), int(row["keeps"]))

    def listed(self, pick: KeepPick) -> list[KeepRow]:
        """Return keeps, the newest first."""
        values = {
            "user": pick.user, "active": pick.active, "reader": pick.reader, "now": self.now(), "limit": pick.limit,
            "accounts": account_rows(pick.accounts),
        }  # fmt: skip
        with self._store.reader() as db:
            return [_row(row) for row in db.rows("keeps_list", values)]

    def now(self) -> int:
        """Return the hub's time, UTC seconds."""
        return self._clock.utc_s()


def _columns(keep: KeepRow) -> dict[str, Any]:
    values = {name: getattr(keep, name) for name in KeepRow.__struct_fields__}
    values |= {name: storable(values[name]) for name in _TEXTS}
    return {_COLUMNS.get(name, name): value for name, value in values.items()}


def _row(row: dict[str, Any]) -> KeepRow:
    return KeepRow(**{_NAMES.get(name, name): value for name, value in row.items()})


def _event(keep: KeepRow) -> StoredEvent:
    data = JobKept(
        cluster=keep.cluster, job_id=keep.job_id, start=keep.start, user=keep.user, account=keep.account,
        asked_by=keep.asked_by, since=keep.since, until=keep.until, reason=storable(keep.reason),
    )  # fmt: skip
    return tell("job.kept", data, keep.at, run=keep.run, unique=keep.id)
