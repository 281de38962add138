"""ActionStore: the actions that rules want, and their outcome, in the hub's store."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from gpuwaste.act.actions.action_types import ActionEntry, ActionQuestion, ActionStatus
from gpuwaste.core.clock import Clock
from gpuwaste.core.text import storable
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import append_told
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

WAITING: Final[tuple[ActionStatus, ...]] = ("intended", "approved")
STOPPED: Final = "actions:stopped"  # UTC second since which no action is sent, 0 for none
_WINDOW_S: Final = 60 * DAY_S
_LEASE: Final = "actor"
_MAX_REASON: Final = 500
_MAX_ANSWER: Final = 2000

ActionCount = tuple[ActionStatus, str, int, int]
"""Status, kind, number of actions, and when the oldest of them was decided."""


class ActionStore:
    """The actions of a hub's store; threads share it as they share the store. Raises StoreError."""

    def __init__(self, store: HubStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def add(self, intents: Sequence[ActionEntry], told: Mapping[str, StoredEvent]) -> list[str]:
        """Add actions that are new, with their events by id; return the ids."""
        if not intents:
            return []
        now = self.now()
        with self._store.writing() as db:
            rows = to_json(_columns(intent, now) for intent in intents)
            new = [str(row[0]) for row in db.run("actions_add", {"rows": rows}).fetchall()]
            append_told(db, [told[id_] for id_ in new], now) if new else None
        return new

    def move(
        self,
        action: str,
        was: Collection[ActionStatus],
        status: ActionStatus,
        told: Sequence[StoredEvent] = (),
        *,
        reason: str = "",
        person: str | None = None,
        plan: Mapping[str, str] | None = None,
        answer: str | None = None,
    ) -> bool:
        """Change the status of an action that has one of `was`, and add the events; return false if it has another one.

        None keeps what is stored. Status sent counts a time that it was sent.
        """
        now = self.now()
        values = {
            "id": action,
            "was": sorted(was),
            "status": status,
            "now": now,
            "reason": storable(reason[:_MAX_REASON]),
            "person": None if person is None else storable(person),
            "plan": None if plan is None else json.dumps(dict(plan)),
            "answer": None if answer is None else storable(answer[:_MAX_ANSWER]),
            "sent": int(status == "sent"),
        }
        with self._store.writing() as db:
            moved = bool(db.run("actions_move", values).fetchall())
            if moved and told:
                append_told(db, told, now)
        return moved

    def found(self, beginning: str) -> list[ActionEntry]:
        """Return the actions whose id starts with `beginning`; two at most."""
        with self._store.reader() as db:
            return [_row(row) for row in db.rows("actions_get", {"id": beginning})]

    def listed(self, question: ActionQuestion) -> list[ActionEntry]:
        """Return actions, the newest first."""
        until = self.now() + 1 if question.end is None else question.end
        values = {
            "status": question.status,
            "rule": question.rule,
            "user": question.user,
            "from_s": until - _WINDOW_S if question.start is None else question.start,
            "to_s": until,
            "limit": question.limit,
        }
        with self._store.reader() as db:
            return [_row(row) for row in db.rows("actions_list", values)]

    def next(
        self, kinds: Collection[str], *, fresh: bool, confirmed: Collection[str] | None = None
    ) -> ActionEntry | None:
        """Return the next action: one that was sent without an outcome, else, if `fresh`, one that may be sent.

        Of the actions of rules only those with an id in `confirmed` may be sent; None: all of them.
        """
        ids = None if confirmed is None else sorted(confirmed)
        values = {"kinds": sorted(kinds), "now": self.now(), "fresh": fresh, "confirmed": ids}
        with self._store.reader() as db:
            rows = db.rows("actions_next", values)
        return _row(rows[0]) if rows else None

    def waiting(self, ids: Collection[str] | None = None) -> list[ActionEntry]:
        """Return the actions of rules that were not sent yet; None: of any id."""
        with self._store.reader() as db:
            rows = db.rows("actions_waiting", {"ids": None if ids is None else sorted(ids)})
        return [_row(row) for row in rows]

    def ends(self, ids: Collection[str]) -> dict[str, tuple[ActionStatus, str]]:
        """Return status and reason of these actions, by id; unknown ids are left out."""
        if not ids:
            return {}
        with self._store.reader() as db:
            rows = db.rows("actions_ends", {"ids": sorted(ids)})
        return {row["id"]: (row["status"], row["reason"]) for row in rows}

    def overdue(self, limit: int) -> list[ActionEntry]:
        """Return actions that were not sent before they expired."""
        with self._store.reader() as db:
            return [_row(row) for row in db.rows("actions_due", {"now": self.now(), "limit": limit})]

    def waiting_of(self, wanted: Collection[tuple[str, str]]) -> list[ActionEntry]:
        """Return the actions of some rules and their subjects that were not sent yet."""
        pairs = [{"rule": storable(rule), "subject": storable(subject)} for rule, subject in sorted(wanted)]
        with self._store.reader() as db:
            return [_row(row) for row in db.rows("actions_waiting_of", {"rows": to_json(pairs)})]

    def of_runs(self, runs: Collection[RunKey]) -> list[ActionEntry]:
        """Return the actions on runs that are not ended, or were done."""
        rows = [{"cluster": run.cluster, "job_id": run.job_id, "run_start": run.start} for run in runs]
        with self._store.reader() as db:
            return [_row(row) for row in db.rows("actions_of_runs", {"rows": to_json(rows)})]

    def sent_last_hour(self, kinds: Collection[str]) -> int:
        """Return how many actions of some kinds were sent in the last hour."""
        with self._store.reader() as db:
            found = db.rows("actions_sent_since", {"since": self.now() - HOUR_S, "kinds": sorted(kinds)})
        return int(found[0]["actions"])

    def counts(self) -> list[ActionCount]:
        """Return the number of actions by status and kind."""
        with self._store.reader() as db:
            rows = db.rows("actions_count")
        return [(row["status"], row["kind"], int(row["actions"]), int(row["first_utc"])) for row in rows]

    def lease(self, holder: str, seconds: int, *, anew: bool = False) -> tuple[str, int]:
        """Give the lease to `holder` if nobody else has it; return the holder, and for how many more seconds.

        A lease with more than half of its time left is renewed only with `anew`: a lease is requested every few
        seconds.
        """
        now = self.now()
        with self._store.writing() as db:
            rows = db.rows("actor_lease", {"name": _LEASE})
            if rows and rows[0]["until_utc"] > now:
                known, until = str(rows[0]["holder"]), int(rows[0]["until_utc"])
                if known != holder or (not anew and 0 < seconds / 2 < until - now):
                    return known, until - now
            db.run("actor_lease_set", {"name": _LEASE, "holder": storable(holder), "until": now + seconds}).fetchall()
        return holder, seconds

    def holder(self) -> str:
        """Return who holds the lease now, "" for nobody."""
        with self._store.reader() as db:
            rows = db.rows("actor_lease", {"name": _LEASE})
        return str(rows[0]["holder"]) if rows and rows[0]["until_utc"] > self.now() else ""

    def stopped(self) -> int:
        """Return since when no action is sent, UTC seconds, 0 if actions are sent."""
        return self._store.mark(STOPPED) or 0

    def stop(self, *, stop: bool) -> None:
        """Stop sending actions, or resume."""
        self._store.set_mark(STOPPED, self.now() if stop else 0)

    def now(self) -> int:
        """Return the hub's time, UTC seconds."""
        return self._clock.utc_s()


def _columns(intent: ActionEntry, now: int) -> dict[str, Any]:
    texts = ("id", "rule", "rule_hash", "kind", "subject", "cluster", "user", "account", "facts")
    return {
        **{name: storable(getattr(intent, name)) for name in texts},
        "job_id": intent.job_id or 0,
        "run_start": intent.start or 0,
        "options": json.dumps(intent.options),
        "approve": intent.approve,
        "decided_utc": intent.decided,
        "expires_utc": intent.expires,
        "status": "intended",
        "status_utc": now,
        "person": "",
        "person_utc": 0,
        "plan": "{}",
        "sends": 0,
        "sent_utc": 0,
        "reason": "",
        "answer": "",
    }


_SAME: Final = (
    *("id", "rule", "rule_hash", "kind", "subject", "cluster", "user", "account", "facts", "approve"),
    *("status", "person", "sends", "reason", "answer"),
)


def _row(row: Mapping[str, Any]) -> ActionEntry:
    """Return an action of the table, where 0 is "not yet", and job id 0 "about no run"."""
    about_run = bool(row["job_id"])
    known: dict[str, Any] = {name: row[name] for name in _SAME}
    return ActionEntry(
        **known,
        job_id=row["job_id"] if about_run else None,
        start=row["run_start"] if about_run else None,
        options=json.loads(row["options"]),
        decided=row["decided_utc"],
        expires=row["expires_utc"],
        since=row["status_utc"],
        person_at=row["person_utc"] or None,
        plan=json.loads(row["plan"]),
        sent=row["sent_utc"] or None,
        run_state=row.get("run_state") or "",
        run_end=row.get("run_end"),
    )
