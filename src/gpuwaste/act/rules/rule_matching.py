"""Which subjects match a rule, and what exempts them or stops its steps; used live, in tests, explain and replay.

It reads temp table facts. A step is stopped by quiet hours, the rule's expiry, and budgets of the last 24 hours.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from gpuwaste.act.rules.rule_definition import NO_HOURS, Rule
from gpuwaste.act.rules.rule_facts import About, facts_of
from gpuwaste.act.rules.rule_ladder import OWN_CLOCK, Hold
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database

PREFIXES: Final[Mapping[About, str]] = {"node": "node/", "model": "model/"}  # in the keys of subjects that are not runs
AGE: Final = "ledger.age_s"  # age of the ledger's facts
_KEY: Final = ("place", "cluster", "job_id", "run_start", "at_utc", "printed_id")
_PLACES: Final = 50_000  # in one statement
EXEMPT_FACTS = ("job.user", "job.account", "job.partition", "job.qos", "job.reservation")
LEDGER_FACTS = ("ledger.exempt_gpu_s", "ledger.coverage")
NODE_FACTS = ("node.name",)
MODEL_FACTS = ("model.name",)


@dataclass(frozen=True, slots=True)
class Subject:
    """A run, a node or the model in use at an instant; `facts` are those that the rules of the pass need, by name.

    `key` identifies it in intents and events.
    """

    place: int
    key: str
    run: RunKey | None
    at_utc: int
    printed_id: str
    facts: Mapping[str, Any] = field(repr=False)

    def text(self, name: str) -> str:
        """Return a text fact, "" if it is unknown."""
        return str(self.facts.get(name) or "")


@dataclass(frozen=True, slots=True)
class Matches:
    """The places of the subjects that match a rule, and for each how long it has matched, None without `since`."""

    places: Sequence[int]
    held_s: Sequence[float | None]


def matches(db: Database, rules: Sequence[Rule]) -> list[Matches]:
    """Return the matches of each rule; an unknown condition does not match."""
    if not rules:
        return []
    parts = []
    for rule in rules:
        parts.append(f"list(place) FILTER ({rule.where.sql})")
        parts.append(f'list("{rule.head.since}") FILTER ({rule.where.sql})' if rule.head.since else "NULL")
    row = db.execute(f"SELECT {', '.join(parts)} FROM facts").fetchone() or ()  # noqa: S608 made by Translator
    found = []
    for number in range(len(rules)):
        places = row[2 * number] or []
        found.append(Matches(places, row[2 * number + 1] or [None] * len(places)))
    return found


def hold_of(rule: Rule, subject: Subject, held_s: float | None, now: int) -> Hold:
    """Return for how long a rule's condition has held for a subject; the age of agents' data is taken into account."""
    if held_s is None:
        return OWN_CLOCK
    age_s = subject.facts.get(AGE) or 0.0 if rule.head.since.startswith("ledger.") else 0.0
    return Hold(held_s, int(now - age_s - held_s))


def subjects(db: Database, about: About, places: Iterable[int], names: Iterable[str] | None = None) -> list[Subject]:
    """Return subjects by their places, with these facts; None: all of them."""
    wanted = sorted(facts_of(about) if names is None else set(names))
    shown = ", ".join(f'"{name}"' for name in (*_KEY, *wanted))
    ordered = sorted(set(places))
    found = []
    for first in range(0, len(ordered), _PLACES):
        part = ", ".join(map(str, ordered[first : first + _PLACES]))
        rows = db.execute(f"SELECT {shown} FROM facts WHERE place IN ({part}) ORDER BY place").fetchall()  # noqa: S608
        found += [_subject(row, wanted, PREFIXES.get(about, "")) for row in rows]
    return found


def places_of(db: Database, job: str) -> list[int]:
    """Return the places of a job, by its printed or raw id, or of a node by its name."""
    sql = "SELECT place FROM facts WHERE printed_id = $job OR job_id::VARCHAR = $job ORDER BY place"
    return [row[0] for row in db.execute(sql, {"job": job}).fetchall()]


def part_values(db: Database, rule: Rule, place: int) -> list[bool | None]:
    """Return the value of each part of a rule's condition for one subject; None: unknown."""
    shown = ", ".join(part.sql for part in rule.where.parts)
    row = db.execute(f"SELECT {shown} FROM facts WHERE place = $place", {"place": place}).fetchone()  # noqa: S608
    return list(row or ())


def _subject(row: Sequence[Any], names: Sequence[str], prefix: str) -> Subject:
    place, cluster, job_id, run_start, at_utc, printed_id = row[: len(_KEY)]
    facts = dict(zip(names, row[len(_KEY) :], strict=True))
    run = RunKey(cluster, job_id, run_start) if job_id else None
    return Subject(place, str(run) if run else prefix + printed_id, run, at_utc, printed_id, facts)


def needed(rule: Rule) -> tuple[str, ...]:
    """Return the facts that exemptions of a rule need."""
    if rule.head.about == "node":
        return NODE_FACTS
    if rule.head.about == "model":
        return MODEL_FACTS
    return EXEMPT_FACTS + (LEDGER_FACTS if rule.of_ledger else ())


def exemption(rule: Rule, subject: Subject) -> str:
    """Return why the rule never touches a subject, "" if it may."""
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
    """Return why the rule does no step at a local time, "" if it may."""
    if local.date() > rule.head.expires:
        return "expired"
    hours = rule.head.quiet_hours
    return "quiet hours" if hours != NO_HOURS and hours.hold(local) else ""


@dataclass(slots=True)
class StepsSpent:
    """The steps of one rule in the last 24 hours, in total and by user."""

    steps: int = 0
    users: Counter[str] = field(default_factory=Counter)

    def full(self, rule: Rule, user: str) -> str:
        """Return which budget has no step left, "" if all have."""
        if self.steps >= rule.budget.rule_per_day:
            return "budget of the rule"
        return "budget of the user" if user and self.users[user] >= rule.budget.user_per_day else ""

    def add(self, user: str) -> None:
        """Count a step."""
        self.steps += 1
        self.users[user] += 1
