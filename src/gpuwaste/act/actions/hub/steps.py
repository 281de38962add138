"""Each step of an action as an event, and an action as people and the actor read it."""

from typing import Final

from gpuwaste.act.actions.action_store import ActionRow
from gpuwaste.act.actions.action_types import ActionEntry
from gpuwaste.act.rules.intent import ActionStatus, Intent
from gpuwaste.jobs.events.envelope import tell
from gpuwaste.jobs.events.kinds.action import ActionStep
from gpuwaste.jobs.events.stored_event import StoredEvent

_FAMILY: Final = "action."


def told(
    intent: Intent,
    status: ActionStatus,
    at: int,
    *,
    person: str = "",
    reason: str = "",
    answer: str = "",
    sends: int = 0,
) -> StoredEvent:
    """Return the event of a step; each time that an action is sent is one of its own."""
    run = intent.run
    data = ActionStep(
        cluster=run.cluster if run else "",
        job_id=run.job_id if run else None,
        start=run.start if run else None,
        subject=intent.subject,
        user=intent.user,
        account=intent.account,
        action=intent.id,
        kind=intent.kind,
        rule=intent.rule,
        rule_hash=intent.rule_hash,
        options=dict(intent.options),
        facts=intent.facts,
        approve=intent.approve,
        expires=intent.expires_utc,
        person=person,
        reason=reason,
        answer=answer,
    )
    return tell(_FAMILY + status, data, at, subject=intent.subject, run=run, unique=f"{intent.id} {sends}")


def entry(row: ActionRow, wait: str = "") -> ActionEntry:
    """Return an action as it travels; `wait` is why it waits, where it does."""
    intent = row.intent
    run = intent.run
    return ActionEntry(
        id=intent.id,
        rule=intent.rule,
        rule_hash=intent.rule_hash,
        kind=intent.kind,
        subject=intent.subject,
        cluster=run.cluster if run else "",
        job_id=run.job_id if run else None,
        start=run.start if run else None,
        user=intent.user,
        account=intent.account,
        options=dict(intent.options),
        facts=intent.facts,
        approve=intent.approve,
        decided=intent.decided_utc,
        expires=intent.expires_utc,
        status=row.status,
        since=row.status_utc,
        person=row.person,
        person_at=row.person_utc or None,
        plan=dict(row.plan),
        sends=row.sends,
        sent=row.sent_utc or None,
        reason=wait or row.reason,
        answer=row.answer,
        run_state=row.run_state,
        run_end=row.run_end,
    )
