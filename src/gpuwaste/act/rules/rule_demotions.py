"""RuleDemotions: rules in mode act whose live precision fell below their floor go back to notify, until restored.

A demotion is a row of the store, by the rule's name and its file: it survives a restart, and ends by an operator or
with a changed file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpuwaste.act.actions.action_types import ActionEntry, action_id
from gpuwaste.act.rules.live_precision import LivePrecision, live_precisions
from gpuwaste.act.rules.rule_definition import NOTIFY, Rule
from gpuwaste.core import log_event
from gpuwaste.core.text import storable
from gpuwaste.core.units import DAY_S, say_percent
from gpuwaste.jobs.events.envelope import tell
from gpuwaste.jobs.events.event_store import append_told
from gpuwaste.jobs.events.kinds.rule import RuleDemoted
from gpuwaste.store.hub.hub_store import HubStore

_DEMOTED: Final = log_event.warning(
    "rule-demoted: rule {rule} goes back to notify: {reason}",
    "Look at the jobs that it hit (`gpuwaste events list --kinds rule.fired`), change its file, or, if it is right,"
    " run `gpuwaste rules restore {rule}`.",
)
_EVERY_S: Final = 900
_MAIL_S: Final = 3 * DAY_S
RuleFile = tuple[str, str]
"""A rule's name and the hash of its file."""


@dataclass(frozen=True, slots=True)
class Demotion:
    """When and by what a rule went back to notify; `restored` is when it came back, 0: not yet."""

    at: int
    judged: int
    wrong: int
    floor: float
    restored: int

    @property
    def words(self) -> str:
        """The reason, as a clause."""
        right = say_percent(1 - self.wrong / self.judged) if self.judged else "unknown"
        floor = say_percent(self.floor)
        return f"{self.wrong} of {self.judged} judged runs were misjudged, precision {right}, floor {floor}"


class RuleDemotions:
    """One thread judges; any thread restores and reads. Raises StoreError."""

    def __init__(self, store: HubStore) -> None:
        self._store = store
        self._judged_utc: int | None = None
        self.live: Mapping[str, LivePrecision] = {}

    def known(self) -> dict[RuleFile, Demotion]:
        """Return the last demotion of each rule and file."""
        with self._store.reader() as db:
            rows = db.rows("rule_demotions_all")
        return {
            (row["rule"], row["hash"]): Demotion(
                row["at_utc"], row["judged"], row["wrong"], row["floor"], row["restored_utc"]
            )
            for row in rows
        }

    def in_force(self, rules: Sequence[Rule]) -> list[Rule]:
        """Return rules with the modes that they have now."""
        known = self.known()
        return [_demoted(rule) if demotion_of(rule, known) else rule for rule in rules]

    def judge(self, rules: Sequence[Rule], now: int, *, at_once: bool = False) -> list[ActionEntry]:
        """Measure the precision of rules, every quarter of an hour, and demote those below their floor.

        Return the mails to staff about these.
        """
        last = self._judged_utc
        if not at_once and last is not None and 0 <= now - last < _EVERY_S:
            return []
        known = self.known()
        self.live = live_precisions(
            self._store, rules, {key: one.restored for key, one in known.items() if one.restored}, now
        )
        self._judged_utc = now
        mails = []
        for rule in rules:
            found = self.live.get(rule.name)
            if found and rule.head.mode == "act" and not demotion_of(rule, known) and found.below(rule):
                mails.append(self._demote(rule, found, now))
        return mails

    def restore(self, rule: Rule, person: str, now: int) -> bool:
        """Give a rule its mode back; false where it has it. Only steps from now on are judged again."""
        if not demotion_of(rule, self.known()):
            return False
        values = {"rule": storable(rule.name), "hash": rule.hash, "now": now, "person": storable(person)}
        with self._store.writing() as db:
            db.run("rule_demotions_restore", values).fetchall()
        self._judged_utc = None
        return True

    def _demote(self, rule: Rule, found: LivePrecision, now: int) -> ActionEntry:
        floor = rule.head.precision_floor.value
        demotion = Demotion(now, found.judged, found.wrong, floor, 0)
        data = RuleDemoted(rule.name, rule.hash, found.judged, found.wrong, found.precision or 0.0, floor)
        event = tell("rule.demoted", data, now, subject=f"rule/{rule.name}", unique=f"{rule.hash} {now}")
        values = {
            "rule": storable(rule.name), "hash": rule.hash, "now": now, "judged": found.judged, "wrong": found.wrong,
            "floor": floor,
        }  # fmt: skip
        with self._store.writing() as db:
            db.run("rule_demotions_add", values).fetchall()
            append_told(db, [event], now)
        _DEMOTED.log(rule=rule.name, reason=demotion.words)
        return _mail(rule, demotion, now)


def demotion_of(rule: Rule, known: Mapping[RuleFile, Demotion]) -> Demotion | None:
    """Return the demotion of a rule that is in force, None for none."""
    found = known.get((rule.name, rule.hash))
    return None if found is None or found.restored or rule.head.mode != "act" else found


def _demoted(rule: Rule) -> Rule:
    return replace(rule, head=replace(rule.head, mode="notify"))


def _mail(rule: Rule, demotion: Demotion, now: int) -> ActionEntry:
    subject = f"rule/{rule.name}"
    text = (
        f"Rule {rule.name} is in mode notify now: {demotion.words}.\n\nA run is misjudged if one of its GPUs worked"
        " again after the last step of the rule, or if an appeal about it was upheld.\n\n"
        f"  gpuwaste rules list                what it did\n  gpuwaste rules restore {rule.name}\n"
        "\nA changed file of the rule is in use with its own mode."
    )
    return ActionEntry(
        id=action_id("", NOTIFY, subject, f"{rule.hash} {now}"), rule="", rule_hash="", kind=NOTIFY, subject=subject,
        options={"subject": f"Rule {rule.name} is back in mode notify", "text": text, "to": "staff"}, facts="{}",
        approve="none", decided=now, expires=now + _MAIL_S, status="intended", since=now,
    )  # fmt: skip
