"""What keeps a rule from a subject that matches: exemptions, coverage, quiet hours, budgets, the last day."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from gpuwaste.act.rules.matching import Subject
from gpuwaste.act.rules.rule import NO_HOURS, Rule

EXEMPT_FACTS = ("job.user", "job.account", "job.partition", "job.qos", "job.reservation")
LEDGER_FACTS = ("ledger.exempt_gpu_s", "ledger.coverage")
NODE_FACTS = ("node.name",)
MODEL_FACTS = ("model.name",)


def needed(rule: Rule) -> tuple[str, ...]:
    """Return the facts that exemptions of a rule need."""
    if rule.head.about == "node":
        return NODE_FACTS
    if rule.head.about == "model":
        return MODEL_FACTS
    return EXEMPT_FACTS + (LEDGER_FACTS if rule.of_ledger else ())


def exemption(rule: Rule, subject: Subject) -> str:
    """Return why the rule never touches a subject, "" where it may."""
    exempt = rule.exempt
    if rule.head.about == "node":
        return "node" if exempt.nodes.match(subject.text("node.name")) else ""
    if rule.head.about == "model":
        return ""
    for name, patterns, fact in (
        ("user", exempt.users, "job.user"),
        ("account", exempt.accounts, "job.account"),
        ("partition", exempt.partitions, "job.partition"),
        ("qos", exempt.qos, "job.qos"),
        ("reservation", exempt.reservations, "job.reservation"),
    ):
        # A waiting job may name several partitions.
        if patterns.texts and patterns.match_any(subject.text(fact).split(",")):
            return name
    return _of_ledger(rule, subject) if rule.of_ledger else ""


def _of_ledger(rule: Rule, subject: Subject) -> str:
    if rule.exempt.waste and (subject.facts.get("ledger.exempt_gpu_s") or 0) > 0:
        return "exempt waste"
    coverage = subject.facts.get("ledger.coverage")
    if rule.exempt.coverage_below.value and (coverage is None or coverage < rule.exempt.coverage_below.value):
        return "coverage"
    return ""


def at_rest(rule: Rule, local: datetime) -> str:
    """Return why the rule does no step at a local time, "" where it may."""
    if local.date() > rule.head.expires:
        return "expired"
    hours = rule.head.quiet_hours
    return "quiet hours" if hours != NO_HOURS and hours.hold(local) else ""


@dataclass(slots=True)
class StepsSpent:
    """The steps of one rule in the last 24 hours, as a whole and by user."""

    steps: int = 0
    users: Counter[str] = field(default_factory=Counter)

    def full(self, rule: Rule, user: str) -> str:
        """Return which budget has no step left, "" where all have."""
        if self.steps >= rule.budget.rule_per_day:
            return "budget of the rule"
        return "budget of the user" if user and self.users[user] >= rule.budget.user_per_day else ""

    def add(self, user: str) -> None:
        """Count a step."""
        self.steps += 1
        self.users[user] += 1
