"""A step of a rule as the store and the stream of events keep it."""

import json
from typing import Any

from gpuwaste.act.rules.engine import Firing
from gpuwaste.core.text import storable
from gpuwaste.jobs.events.envelope import tell
from gpuwaste.jobs.events.kinds.rule import RuleFired
from gpuwaste.jobs.events.stored_event import StoredEvent


def stored(firing: Firing, cluster: str) -> dict[str, Any]:
    """Return its row of table rule_firings."""
    rule, intent, run = firing.rule, firing.intent, firing.intent.run
    texts = {
        "id": intent.id, "rule": rule.name, "hash": rule.hash, "mode": rule.head.mode, "action": intent.kind,
        "subject": intent.subject, "cluster": cluster, "user": intent.user, "account": intent.account,
        "facts": intent.facts,
    }  # fmt: skip
    return {
        **{name: storable(text) for name, text in texts.items()},
        "at_utc": intent.decided_utc,
        "step": firing.step + 1,
        "done": firing.acts,
        "job_id": run.job_id if run else 0,
        "run_start": run.start if run else 0,
    }


def event(firing: Firing, cluster: str) -> StoredEvent:
    """Return its event."""
    rule, intent = firing.rule, firing.intent
    data = RuleFired(
        cluster, rule.name, rule.hash, rule.head.mode, firing.step + 1, intent.kind, firing.acts, intent.subject,
        intent.user, intent.account, intent.id, intent.decided_utc, json.loads(intent.facts),
    )  # fmt: skip
    return tell("rule.fired", data, intent.decided_utc, subject=intent.subject, run=intent.run, unique=intent.id)
