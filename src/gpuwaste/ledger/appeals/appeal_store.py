"""AppealStore: the appeals in a hub's store, a row for each run, with their events; as thread-safe as the store."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.clock import Clock
from gpuwaste.core.text import storable
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.event_store import append_told
from gpuwaste.jobs.events.kinds.appeal import AppealStep
from gpuwaste.jobs.run_store import runs_named
from gpuwaste.ledger.appeals.appeal_evidence import Evidence
from gpuwaste.ledger.reports.job_types import Appeal
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

_MAX_EVIDENCE: Final = 32 * 1024  # characters of JSON
_NO_RUN: Final = {"cluster": "", "job_id": 0, "run_start": 0, "printed_id": ""}


@dataclass(frozen=True, slots=True)
class AppealPick:
    """Which appeals a list has: None is any."""

    limit: int
    user: str | None = None
    status: str | None = None
    appeal: str | None = None


class AppealStore:
    """Raises StoreError."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def own_runs(self, printed_id: str, user: str) -> list[JobRecord]:
        """Return the runs of a job that are this user's."""
        return runs_named(self._store, printed_id, accounts=(), reader=user)

    def add(self, appeal: str, user: str, words: str, evidence: Evidence, *, most_open: int) -> bool:
        """Store an appeal on runs; it replaces an open one of the same kind on them. False: too many are open."""
        now = self.now()
        facts = json.dumps(evidence.facts, allow_nan=False, default=str)
        common = {
            "id": appeal, "kind": evidence.kind, "about": evidence.about, "user": user, "at_utc": now,
            "words": storable(words), "evidence": storable(facts) if len(facts) <= _MAX_EVIDENCE else "{}",
            "status": "open", "outcome": "", "reply": "", "replied_by": "", "replied_utc": 0,
        }  # fmt: skip
        rows = [{**_key(run.run_key), "printed_id": run.printed_id, **common} for run in evidence.runs]
        values = {"rows": to_json(rows or [{**_NO_RUN, **common}])}
        with self._store.writing() as db:
            left = db.rows("appeals_open", {"user": user, **values})[0]["appeals"]
            if left >= most_open:
                return False
            db.run("appeals_replace", values).fetchall()
            db.run("appeals_add", values).fetchall()
            self._tell(db, appeal, now)
        return True

    def close(self, appeal: Appeal, person: str, reply: str, outcome: str) -> bool:
        """Close an open appeal with a reply; false where it is closed."""
        now = self.now()
        values = {"id": appeal.id, "person": storable(person), "reply": storable(reply), "outcome": outcome, "now": now}
        with self._store.writing() as db:
            if self._of(db, appeal.id)[0].status != "open":
                return False
            db.run("appeals_close", values).fetchall()
            self._tell(db, appeal.id, now)
        return True

    def of(self, runs: Collection[RunKey]) -> list[Appeal]:
        """Return the appeals on runs, the oldest first."""
        with self._store.reader() as db:
            return [_appeal(row) for row in db.rows("appeals_of", {"runs": to_json(map(_key, runs))})]

    def listed(self, pick: AppealPick) -> list[Appeal]:
        """Return appeals, the newest first."""
        with self._store.reader() as db:
            return [_appeal(row) for row in db.rows("appeals_list", _values(pick))]

    def now(self) -> int:
        """Return the hub's time, UTC seconds."""
        return self._clock.utc_s()

    def _tell(self, db: Database, appeal: str, now: int) -> None:
        """Add the event of an appeal as it is now, in the caller's transaction."""
        runs = [
            RunKey(row["cluster"], row["job_id"], row["run_start"]) for row in db.rows("appeals_run", {"id": appeal})
        ]
        append_told(db, [_event(one, runs[0] if runs else None, now) for one in self._of(db, appeal)], now)

    def _of(self, db: Database, appeal: str) -> list[Appeal]:
        return [_appeal(row) for row in db.rows("appeals_list", _values(AppealPick(1, appeal=appeal)))]


def _values(pick: AppealPick) -> dict[str, Any]:
    return {"user": pick.user, "status": pick.status, "id": pick.appeal, "limit": pick.limit}


def _appeal(row: dict[str, Any]) -> Appeal:
    return Appeal(**{**row, "replied_utc": row["replied_utc"] or None})


def _event(appeal: Appeal, run: RunKey | None, now: int) -> StoredEvent:
    data = AppealStep(
        appeal=appeal.id, kind=appeal.kind, about=appeal.about, printed_id=appeal.printed_id, user=appeal.user,
        runs=appeal.runs, words=appeal.words, status=appeal.status, outcome=appeal.outcome, reply=appeal.reply,
        replied_by=appeal.replied_by,
    )  # fmt: skip
    kind = "appeal.closed" if appeal.status == "closed" else "appeal.opened"
    return tell(kind, data, now, subject=f"appeal/{appeal.id}", run=run, unique=appeal.id)


def _key(run: RunKey) -> dict[str, Any]:
    return {"cluster": run.cluster, "job_id": run.job_id, "run_start": run.start}
