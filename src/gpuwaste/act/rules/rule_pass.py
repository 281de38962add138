"""One pass of rules over the facts of an instant: which steps are due, which waiting actions are still wanted."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.actions.action_types import ActionEntry, action_id
from gpuwaste.act.actions.kinds.notify import STAFF, USER
from gpuwaste.act.keeps.kept_runs import KEPT
from gpuwaste.act.rules.rule_definition import NOTIFY, Rule
from gpuwaste.act.rules.rule_facts import filled, names_in
from gpuwaste.act.rules.rule_ladder import GAP_S, Hold, Ladder, done, due, holding, kept, unbroken
from gpuwaste.act.rules.rule_matching import (
    AGE,
    PREFIXES,
    Matches,
    StepsSpent,
    Subject,
    at_rest,
    exemption,
    hold_of,
    matches,
    needed,
    subjects,
)
from gpuwaste.advice.hold_out import HoldOut
from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database

Ladders = MutableMapping[str, Ladder]
"""The ladder of a rule for each subject."""
KEPT_S: Final = 30 * DAY_S  # of a run's ladder: an action of its next round differs from that of the last
_SHOWN: Final = ("job.id", "job.user", "job.account", "job.partition", "job.gpus", "node.name", "model.name")
_CHANGED: Final = "the rule has changed"
_DEMOTED: Final = "the rule is back in mode notify: gpuwaste rules list"
_REMOVED: Final = "the rule was removed"
_KEPT: Final = "the run is kept: gpuwaste keep list"
_ANEW: Final = "the rule has started again with this job, node or model"
RuleSubject = tuple[str, str]
"""A rule's name and a subject."""


@dataclass(frozen=True, slots=True)
class Firing:
    """A step that is due: `acts` is whether it is done or only recorded; `campaign` holds it back, "" for none."""

    rule: Rule
    step: int
    acts: bool
    intent: ActionEntry
    campaign: str = ""


@dataclass(slots=True)
class RulePass:
    """What a pass over one rule gave: firings, subjects whose ladder has changed, and why others were skipped.

    `held` are the subjects for which the condition holds, `over` those for which it held until now, and `kept` those
    for which the rule waits: steps that are not done yet for these two must not be done.
    """

    rule: Rule
    matched: int = 0
    firings: list[Firing] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    held: dict[str, Hold] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    left: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class PassInstant:
    """The time of a pass: UTC seconds, the site's local time, and whether nothing was observed for a while before.

    `hold_out` are the campaigns at that time. `keeps` has for each run, by its key as text, until when it is kept, UTC
    seconds: now, or at some time since the last pass.
    """

    now: int
    local: datetime
    gap: bool = False
    hold_out: HoldOut = field(default_factory=HoldOut)
    keeps: Mapping[str, int] = field(default_factory=dict)


def evaluate(  # noqa: PLR0917 what a pass needs
    db: Database,
    rules: Sequence[Rule],
    ladders: Mapping[str, Ladders],
    spent: Mapping[str, StepsSpent],
    at: PassInstant,
    told: Collection[str] | None = None,
) -> list[RulePass]:
    """Evaluate rules about one kind of subject over temp table facts; update `ladders` and `spent`, by rule.

    `told` are the subjects of events since the last pass, for rules that are not evaluated each minute.
    """
    found = matches(db, rules)
    about = rules[0].head.about if rules else "running"
    places = {place for one in found for place in one.places}
    names = {name for rule in rules for name in (*rule.names, *needed(rule), *_texts(rule), *_ages(rule))}
    known = {one.place: one for one in subjects(db, about, places, names | _named(about))}
    return [
        _one_rule(rule, one, known, ladders[rule.name], spent[rule.name], at, told)
        for rule, one in zip(rules, found, strict=True)
    ]


def _one_rule(  # noqa: PLR0917 what a pass has at hand
    rule: Rule,
    found: Matches,
    known: Mapping[int, Subject],
    ladders: Ladders,
    spent: StepsSpent,
    at: PassInstant,
    told: Collection[str] | None,
) -> RulePass:
    result = RulePass(rule)
    rest = at_rest(rule, at.local)
    seen: set[str] = set()
    _interrupt(rule, ladders, at, result)
    for place, held_s in zip(found.places, found.held_s, strict=True):
        subject = known[place]
        key = subject.key
        heard = rule.periodic or key in (told or ())
        if reason := exemption(rule, subject) or (KEPT if key in result.kept else ""):
            if heard:
                result.left[reason] += 1
            continue
        hold = result.held[key] = hold_of(rule, subject, held_s, at.now)
        if not heard:
            continue
        result.matched += 1
        seen.add(key)
        before = ladders.get(key)
        ladder = holding(rule, before, at.now, gap=at.gap, hold=hold)
        if before and before.step and not unbroken(rule, hold, before.step - 1, before.step_utc):
            result.over.add(key)  # it did not hold for a while between two passes
        step = due(rule, ladder, at.now, held_s)
        if step is not None:
            user = subject.text("job.user")
            if reason := rest or spent.full(rule, user):
                result.left[reason] += 1
            else:
                result.firings.append(_firing(rule, step, ladder, subject, at))
                ladder = done(ladder, at.now)
                spent.add(user)
        if ladder != before:
            ladders[key] = ladder
            result.changed.add(key)
    _ended(rule, ladders, seen, at.now, result)
    return result


def _interrupt(rule: Rule, ladders: Ladders, at: PassInstant, result: RulePass) -> None:
    """Interrupt the ladders of kept runs, whether their condition holds or not: what was decided before is over."""
    if not rule.head.keep:
        return
    result.kept.update(key for key, until in at.keeps.items() if until > at.now)
    for key in at.keeps.keys() & ladders.keys():
        result.over.add(key)
        after = kept(rule, ladders[key])
        if after != ladders[key]:
            ladders[key] = after
            result.changed.add(key)


def _ended(rule: Rule, ladders: Ladders, seen: Collection[str], now: int, result: RulePass) -> None:
    """Record for which subjects the condition no longer holds; a ladder without a step done is dropped at once."""
    for key in [key for key in ladders if key not in seen]:
        ladder = ladders[key]
        if ladder.began is not None and rule.periodic:  # an event has no duration: it never ends
            result.over.add(key)
        # A round without a step done has no step to count from.
        last = ladder.step_utc or now
        if not (ladder.step or ladder.round) or not _kept(rule, key, now - last):
            del ladders[key]
        elif ladder.began is None:
            continue
        else:
            ladders[key] = Ladder(None, ladder.step, last, ladder.round)
        result.changed.add(key)


def _kept(rule: Rule, key: str, since_s: int) -> bool:
    """Return whether the next round needs a number: a run is over some day, a node or a model is always the same."""
    return key.startswith(tuple(PREFIXES.values())) or since_s < max(rule.head.cooldown, KEPT_S)


def _firing(rule: Rule, number: int, ladder: Ladder, subject: Subject, at: PassInstant) -> Firing:
    step, now = rule.steps[number], at.now
    shown = {name: subject.facts.get(name) for name in dict.fromkeys((*rule.names, *_SHOWN)) if name in subject.facts}
    run = subject.run
    intent = ActionEntry(
        id=step_id(rule, number, ladder.round, subject.key),
        rule=rule.name,
        rule_hash=rule.hash,
        kind=step.action,
        subject=subject.key,
        cluster=run.cluster if run else "",
        job_id=run.job_id if run else None,
        start=run.start if run else None,
        decided=now,
        expires=now + rule.head.valid,
        status="intended",
        since=now,
        facts=json.dumps(shown, allow_nan=False),
        options={name: filled(text, subject.facts) for name, text in step.options.items()},
        user=subject.text("job.user"),
        account=subject.text("job.account"),
        approve=rule.head.approve,
    )
    campaign = _campaign(rule, intent, at)
    return Firing(rule, number, rule.does(step) and not campaign, intent, campaign)


def _campaign(rule: Rule, intent: ActionEntry, at: PassInstant) -> str:
    """Return the campaign that holds a step back from its user; none does where the rule protects jobs."""
    if not intent.user or rule.protects:
        return ""
    return at.hold_out.holding_back("rule", rule.name, intent.user, intent.account, at.now)


def step_id(rule: Rule, number: int, round_: int, subject: str) -> str:
    """Return the id of a step's intent: decided again after a crash it is the same, so that it is one action."""
    return action_id(rule.name, rule.steps[number].action, subject, f"{rule.hash} {number} {round_}")


def _ages(rule: Rule) -> Iterable[str]:
    return [AGE] if rule.head.since.startswith("ledger.") else []


def _texts(rule: Rule) -> Iterable[str]:
    """Return the facts that the texts of a rule's actions use."""
    return [name for step in rule.steps for text in step.options.values() for name in names_in(text)]


def _named(about: str) -> set[str]:
    space = about if about in {"node", "model"} else "job"
    return {name for name in _SHOWN if name.startswith(f"{space}.")}


@dataclass(frozen=True, slots=True)
class ConfirmedActions:
    """`wanted` are the ids of actions for which the condition holds, each with its notice's id or ""."""

    wanted: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)  # reasons by id


def judged(
    waiting: Sequence[ActionEntry],
    passes: Sequence[RulePass],
    ladders: Mapping[str, Ladders],
    removed: Callable[[str], bool],
) -> ConfirmedActions:
    """Judge actions by a pass and the ladders after it; `removed` returns whether a rule's file is gone.

    An action of a rule whose file cannot be used is neither wanted nor dropped.
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


def _judge(found: ConfirmedActions, intent: ActionEntry, one: RulePass, round_: int) -> None:
    rule = one.rule
    if intent.subject in one.kept:
        found.dropped[intent.id] = _KEPT
        return
    ids = [step_id(rule, number, round_, intent.subject) for number in range(len(rule.steps))]
    if intent.id not in ids:
        found.dropped[intent.id] = _ANEW
        return
    if not rule.does(rule.steps[ids.index(intent.id)]):
        found.dropped[intent.id] = _DEMOTED
        return
    number, hold = ids.index(intent.id), one.held.get(intent.subject)
    if hold is not None and unbroken(rule, hold, number, intent.decided):
        notice = _notice(rule, number)
        found.wanted[intent.id] = "" if notice is None else ids[notice]


def _notice(rule: Rule, number: int) -> int | None:
    """Return the step that warns before one: the last mail to the user, else to staff. A sponsor's is no warning."""
    if not actions()[rule.steps[number].action].warned:
        return None
    mails = [before for before in range(number) if rule.steps[before].action == NOTIFY]
    by_reader = {
        reader: [one for one in mails if rule.steps[one].options.get("to", USER) == reader] for reader in (USER, STAFF)
    }
    return max(by_reader[USER] or by_reader[STAFF], default=None)


class Withdrawals:
    """Decides which actions to drop; call it from one thread, after each pass.

    After a time without passes agents first send what they measured meanwhile. For GAP_S after it nothing is dropped,
    since facts may still be unknown: a restart of the hub drops no action for which the condition still holds.
    """

    def __init__(self) -> None:
        """Start without a gap."""
        self._gap_utc: int | None = None
        self._doubtful: set[RuleSubject] = set()

    def due(
        self, passes: Sequence[RulePass], ladders: Mapping[str, Ladders], at: PassInstant
    ) -> Collection[RuleSubject]:
        """Return the rules and subjects whose actions are to be dropped now."""
        found = {(one.rule.name, key) for one in passes if one.rule.head.mode != "observe" for key in one.over}
        if at.gap:
            self._gap_utc = at.now
        if self._gap_utc is not None and 0 <= at.now - self._gap_utc < GAP_S:
            self._doubtful |= found
            return ()
        doubtful, self._doubtful = self._doubtful, set()
        return found | {one for one in doubtful if not _holds(ladders, *one)}


def _holds(ladders: Mapping[str, Ladders], rule: str, key: str) -> bool:
    ladder = ladders.get(rule, {}).get(key)
    return ladder is not None and ladder.began is not None
