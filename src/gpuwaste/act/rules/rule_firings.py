"""A step of a rule as the store and the stream of events keep it."""

import json

from gpuwaste.act.rules.engine import Firing
from gpuwaste.act.rules.rule_store import StoredFiring
from gpuwaste.jobs.events.envelope import tell
from gpuwaste.jobs.events.kinds.rule import RuleFired
from gpuwaste.jobs.events.stored_event import StoredEvent


def stored(firing: Firing, cluster: str) -> StoredFiring:
    """Return its row."""
    rule, intent = firing.rule, firing.intent
    return StoredFiring(
        id=intent.id,
        at_utc=intent.decided_utc,
        rule=rule.name,
        hash=rule.hash,
        mode=rule.head.mode,
        step=firing.step + 1,
        action=intent.kind,
        done=firing.acts,
        subject=intent.subject,
        cluster=cluster,
        run=intent.run,
        user=intent.user,
        account=intent.account,
        facts=intent.facts,
    )


def event(firing: Firing, cluster: str) -> StoredEvent:
    """Return its event."""
    rule, intent = firing.rule, firing.intent
    data = RuleFired(
        cluster, rule.name, rule.hash, rule.head.mode, firing.step + 1, intent.kind, firing.acts, intent.subject,
        intent.user, intent.account, intent.id, intent.decided_utc, json.loads(intent.facts),
    )  # fmt: skip
    return tell("rule.fired", data, intent.decided_utc, subject=intent.subject, run=intent.run, unique=intent.id)
