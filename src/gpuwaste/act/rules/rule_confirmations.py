"""What a pass of rules makes of the actions that wait: which are still wanted, and which are of the past."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.act.actions.catalogue import actions
from gpuwaste.act.rules.engine import Ladders, RulePass, step_id
from gpuwaste.act.rules.intent import Intent
from gpuwaste.act.rules.ladder import unbroken
from gpuwaste.act.rules.rule import NOTIFY, Rule

_CHANGED: Final = "the rule has changed"
_REMOVED: Final = "the rule was removed"
_ANEW: Final = "the rule has begun anew with this job, node or model"


@dataclass(frozen=True, slots=True)
class ConfirmedActions:
    """`wanted` are the ids of actions for which the condition holds, each with its notice's id or ""."""

    wanted: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)  # reasons by id


def judged(
    waiting: Sequence[Intent],
    passes: Sequence[RulePass],
    ladders: Mapping[str, Ladders],
    removed: Callable[[str], bool],
) -> ConfirmedActions:
    """Judge actions by a pass and the ladders after it; `removed` tells whether a rule's file is gone.

    One of a rule whose file cannot be used is neither wanted nor dropped.
    """
    found, by_name = ConfirmedActions(), {one.rule.name: one for one in passes}
    for intent in waiting:
        one = by_name.get(intent.rule)
        if one is None:
            if removed(intent.rule):
                found.dropped[intent.id] = _REMOVED
        elif one.rule.hash != intent.rule_hash:
            found.dropped[intent.id] = _CHANGED
        elif (ladder := ladders[intent.rule].get(intent.subject)) is not None:
            _judge(found, intent, one, ladder.round)
    return found


def _judge(found: ConfirmedActions, intent: Intent, one: RulePass, round_: int) -> None:
    rule = one.rule
    ids = [step_id(rule, number, round_, intent.subject) for number in range(len(rule.steps))]
    if intent.id not in ids:
        found.dropped[intent.id] = _ANEW
        return
    number, hold = ids.index(intent.id), one.held.get(intent.subject)
    if hold is not None and unbroken(rule, hold, number, intent.decided_utc):
        notice = _notice(rule, number)
        found.wanted[intent.id] = "" if notice is None else ids[notice]


def _notice(rule: Rule, number: int) -> int | None:
    """Return the step that warns before one that cannot be undone: the last mail to the user, else to staff."""
    if not actions()[rule.steps[number].action].final:
        return None
    mails = [before for before in range(number) if rule.steps[before].action == NOTIFY]
    to_user = [before for before in mails if rule.steps[before].options.get("to", "user") == "user"]
    return max(to_user or mails, default=None)
