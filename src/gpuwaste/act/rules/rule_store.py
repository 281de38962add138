"""RuleStore: the progress of rules with runs and nodes, and the steps that they did or would have done, with events."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.act.rules.rule_pass import Firing
from gpuwaste.core.text import storable
from gpuwaste.jobs.events.envelope import StoredEvent, tell
from gpuwaste.jobs.events.event_store import append_told
from gpuwaste.jobs.events.kinds.rule import RuleFired
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

_EVALUATED: Final = "rules:pass"  # UTC second of the last pass
_PLACE: Final = "rules:events"  # the last event that rules have read


@dataclass(frozen=True, slots=True)
class StoredLadder:
    """A row of table rule_ladders."""

    rule: str
    hash: str
    subject: str
    began_utc: int | None
    step: int
    step_utc: int
    round: int


class RuleStore:
    """The rules' tables of a hub's store; one thread writes. Raises StoreError."""

    def __init__(self, store: HubStore) -> None:
        self._store = store

    def ladders(self) -> list[StoredLadder]:
        """Return every ladder."""
        with self._store.reader() as db:
            return [StoredLadder(**row) for row in db.rows("rule_ladders_all")]

    def last_steps(self, rules: Collection[tuple[str, str]], since: int) -> list[tuple[str, str, str, int]]:
        """Return rule, file hash, subject and time of the last step since `since` of these rules, by name and hash."""
        if not rules:
            return []
        rows = [{"rule": rule, "hash": digest} for rule, digest in sorted(rules)]
        with self._store.reader() as db:
            found = db.rows("rule_firings_last", {"rows": to_json(rows), "since": since})
        return [(row["rule"], row["hash"], row["subject"], int(row["last_utc"])) for row in found]

    def last_pass(self) -> int | None:
        """Return when rules were evaluated last, UTC seconds; None: never."""
        return self._store.mark(_EVALUATED)

    def last_event(self) -> int | None:
        """Return the last event that rules have read; None: none."""
        return self._store.mark(_PLACE)

    def spent(self, since: int) -> list[dict[str, Any]]:
        """Return the steps of each rule and user since a UTC second."""
        with self._store.reader() as db:
            return db.rows("rule_firings_spent", {"since": since})

    def save(  # noqa: PLR0917 what one pass has changed
        self,
        now: int,
        seq: int | None,
        changed: Sequence[StoredLadder],
        gone: Collection[tuple[str, str]],
        firings: Sequence[Mapping[str, Any]],
        told: Sequence[StoredEvent],
    ) -> None:
        """Store the changes of one pass, in one transaction with its events; `gone` are rules with their subjects."""
        old = [{"rule": one.rule, "subject": storable(one.subject)} for one in changed]
        old += [{"rule": rule, "subject": storable(subject)} for rule, subject in gone]
        with self._store.writing() as db:
            if old:
                db.run("rule_ladders_drop", {"rows": to_json(old)}).fetchall()
            if changed:
                db.run("rule_ladders_add", {"rows": to_json(map(_ladder, changed))}).fetchall()
            if firings:
                db.run("rule_firings_add", {"rows": to_json(firings)}).fetchall()
                append_told(db, told, now)
            db.run("mark_set", {"key": _EVALUATED, "value": now}).fetchall()
            if seq is not None:
                db.run("mark_set", {"key": _PLACE, "value": seq}).fetchall()

    def sums(self, since: int) -> dict[str, Mapping[str, Any]]:
        """Return what each rule did since a UTC second, by its name."""
        with self._store.reader() as db:
            return {row["rule"]: row for row in db.rows("rule_firings_sums", {"since": since})}


def _ladder(one: StoredLadder) -> dict[str, Any]:
    values = {name: getattr(one, name) for name in StoredLadder.__dataclass_fields__}
    return {**values, "subject": storable(one.subject)}


def stored(firing: Firing, cluster: str) -> dict[str, Any]:
    """Return a firing's row of table rule_firings."""
    rule, intent = firing.rule, firing.intent
    texts = {
        "id": intent.id, "rule": rule.name, "hash": rule.hash, "mode": rule.head.mode, "action": intent.kind,
        "subject": intent.subject, "cluster": cluster, "user": intent.user, "account": intent.account,
        "facts": intent.facts, "campaign": firing.campaign,
    }  # fmt: skip
    return {
        **{name: storable(text) for name, text in texts.items()},
        "at_utc": intent.decided,
        "step": firing.step + 1,
        "done": firing.acts,
        "job_id": intent.job_id or 0,
        "run_start": intent.start or 0,
    }


def event(firing: Firing, cluster: str) -> StoredEvent:
    """Return a firing's event."""
    rule, intent = firing.rule, firing.intent
    data = RuleFired(
        cluster, rule.name, rule.hash, rule.head.mode, firing.step + 1, intent.kind, firing.acts, intent.subject,
        intent.user, intent.account, intent.id, intent.decided, json.loads(intent.facts), firing.campaign,
    )  # fmt: skip
    return tell("rule.fired", data, intent.decided, subject=intent.subject, run=intent.run, unique=intent.id)
