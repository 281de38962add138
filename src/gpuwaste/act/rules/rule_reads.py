"""RuleReads: rules in the HTTP API for operators: the list, how a rule applies to a job now, a replay."""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Self

from gpuwaste.act.keeps.kept_runs import kept_words
from gpuwaste.act.rules.live_precision import LivePrecision
from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.act.rules.rule_demotions import Demotion, demotion_of
from gpuwaste.act.rules.rule_file import rule_from_toml
from gpuwaste.act.rules.rule_keeps import asked_share
from gpuwaste.act.rules.rule_ladder import due, holding
from gpuwaste.act.rules.rule_matching import (
    Subject,
    at_rest,
    exemption,
    hold_of,
    matches,
    part_values,
    places_of,
    subjects,
)
from gpuwaste.act.rules.rule_replay import replayed
from gpuwaste.act.rules.rule_service import RuleService
from gpuwaste.act.rules.rule_types import (
    LiveShare,
    LookDocument,
    PartValue,
    ReplayDocument,
    ReplayedShare,
    RuleQuestion,
    RuleRestored,
    RulesDocument,
    RuleStanding,
    SubjectLook,
)
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.order_body import read_order
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, CONFLICT, FORBIDDEN, LATER, NOT_FOUND, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.units import DAY_S
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

_DAYS: Final = 30
_MOST: Final = 20  # runs of a job that are checked
_LONGEST_S: Final = 366 * DAY_S
_MAX_BODY: Final = 512 * 1024  # bytes: a rule of 64 Ki characters, each six bytes of JSON, and more


class RuleReads(Part):
    """For any thread; every method may raise Refusal or StoreError."""

    def __init__(
        self, parts: RuleService, store: HubStore, cluster: Callable[[], str], clock: Clock, settings: LedgerSettings
    ) -> None:
        self._parts = parts
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._keeps = parts.keeps
        self._replayed: dict[tuple[str, str], ReplayedShare] = {}
        self._replaying = threading.Lock()

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        clock, cluster = parts.get(HostPorts).clock, parts.get(ClusterFacts).known
        part = cls(parts.get(RuleService), parts.get(HubStore), cluster, clock, parts.get(Judging).standing)
        parts.get(Bus).subscribe(LedgerSettings, part.judge_by)
        return part

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next replay on; for any thread."""
        self._settings = settings

    def rules(self, scope: Scope) -> RulesDocument:
        """Return the rules in use and what they did."""
        _check(scope)
        now, figures = self._clock.utc_s(), self._parts.figures
        sums = self._parts.store.sums(now - _DAYS * DAY_S)
        rows = []
        demotions = self._parts.demotions
        known = demotions.known()
        for rule in demotions.in_force(self._parts.rules.rules):
            did = sums.get(rule.name, {})
            rows.append(
                RuleStanding(
                    name=rule.name,
                    mode=rule.head.mode,
                    about=rule.head.about,
                    where=rule.where.text,
                    steps=[step.words for step in rule.steps],
                    matching=figures.matched.get(rule.name),
                    left=figures.left.get(rule.name, {}),
                    steps_30d=did.get("steps", 0),
                    recorded_30d=did.get("recorded", 0),
                    subjects_30d=did.get("subjects", 0),
                    users_30d=did.get("users", 0),
                    last=did.get("last_utc"),
                    live=_live(demotions.live.get(rule.name)),
                    replayed=self._replayed.get((rule.name, rule.hash)),
                    precision_floor=rule.head.precision_floor.value,
                    **_demotion(known.get((rule.name, rule.hash)), rule),
                )
            )
        errors = [str(error) for error in self._parts.rules.errors]
        passed = figures.passed_utc or None
        return RulesDocument(generated=now, passed=passed, pass_s=figures.seconds, rules=rows, errors=errors)

    def look(self, scope: Scope, body: bytes) -> LookDocument:
        """Return how a rule applies to a job or node now; without one, how many match."""
        _check(scope)
        question = read_order(body, RuleQuestion, _MAX_BODY, what="question")
        rule, now = _rule(question), self._clock.utc_s()
        with self._store.reader() as db:
            self._parts.make_facts(db, rule.head.about, self._known_cluster(), now)
            found = matches(db, [rule])[0]
            places = places_of(db, question.job)[:_MOST] if question.job else []
            if question.job and not places:
                what = rule.head.about if rule.head.about in {"node", "model"} else f"{rule.head.about} job"
                raise Refusal(NOT_FOUND, f"{question.job}: no {what} with facts: see gpuwaste now")
            held = dict(zip(found.places, found.held_s, strict=True))
            looked = [self._subject(db, rule, one, held, now) for one in subjects(db, rule.head.about, places)]
            demotion = demotion_of(rule, self._parts.demotions.known())
            candidates = db.execute("SELECT count(*) FROM facts").fetchall()[0][0]
        return LookDocument(
            generated=now,
            name=rule.name,
            mode=rule.head.mode,
            matching=len(found.places),
            candidates=candidates,
            found=looked,
            demoted="" if demotion is None else demotion.words,
        )

    def replay(self, scope: Scope, body: bytes) -> ReplayDocument:
        """Return what a rule would have done in a window; one at a time, since it reads much of the store."""
        _check(scope)
        question = read_order(body, RuleQuestion, _MAX_BODY, what="question")
        rule = _rule(question)
        end = min(question.end or self._clock.utc_s(), self._clock.utc_s())
        if not 0 < end - question.start <= _LONGEST_S:
            raise Refusal(BAD, "start: expected an instant before the end, at most 366 days")
        if not self._replaying.acquire(blocking=False):
            raise Refusal(LATER, "another replay is running: try again later")
        asked = asked_share(self._parts.demotions.live.get(rule.name))
        try:
            with self._store.reader() as db:
                found = replayed(db, rule, self._known_cluster(), question.start, end, self._settings, asked)
        except ConfigError as error:
            raise Refusal(BAD, str(error)) from error
        finally:
            self._replaying.release()
        if any(one.hash == rule.hash for one in self._parts.rules.rules):
            self._replayed[rule.name, rule.hash] = _at_last_step(found, rule)
        return found

    def restore(self, scope: Scope, name: str) -> RuleRestored:
        """Give a rule that went back to notify the mode of its file; for Slurm's operators and administrators."""
        if not scope.operator:
            raise Refusal(FORBIDDEN, "only an Operator or Administrator of Slurm may restore a rule: see sacctmgr")
        rule = next((one for one in self._parts.rules.rules if one.name == name), None)
        if rule is None:
            raise Refusal(NOT_FOUND, f"no rule {name!r:.80} is in use: see gpuwaste rules list")
        if not self._parts.demotions.restore(rule, scope.user, self._clock.utc_s()):
            raise Refusal(CONFLICT, f"rule {name} is in mode {rule.head.mode}: nothing is changed")
        return RuleRestored(name=name, mode=rule.head.mode)

    def _subject(
        self, db: Database, rule: Rule, subject: Subject, held: dict[int, float | None], now: int
    ) -> SubjectLook:
        values = part_values(db, rule, subject.place)
        keep = self._kept(rule, subject, now)
        matching = subject.place in held
        before = self._parts.ladder(rule, subject.key)
        step = None
        held_s: float | None = None
        if matching:
            ladder = holding(rule, before, now, gap=False, hold=hold_of(rule, subject, held[subject.place], now))
            own = None if ladder.began is None else float(now - ladder.began)
            held_s = own if held[subject.place] is None else held[subject.place]
            rests = at_rest(rule, datetime.fromtimestamp(now))  # noqa: DTZ006 the site's own time is meant
            waits = rests or exemption(rule, subject) or keep
            step = None if waits else due(rule, ladder, now, held[subject.place])
        return SubjectLook(
            subject=subject.key,
            printed_id=subject.printed_id,
            matches=matching,
            exempt=exemption(rule, subject),
            kept=keep,
            held_s=held_s,
            steps_done=before.step if before else 0,
            due="" if step is None else rule.steps[step].action,
            parts=[
                PartValue(text=part.text, value=value, facts={name: subject.facts[name] for name in part.names})
                for part, value in zip(rule.where.parts, values, strict=True)
            ],
        )

    def _kept(self, rule: Rule, subject: Subject, now: int) -> str:
        """Return why the rule waits for a run, "" if it does not."""
        if subject.run is None or not rule.head.keep:
            return ""
        keep = self._keeps.active([subject.run], now).get(subject.run)
        return "" if keep is None else kept_words(keep)

    def _known_cluster(self) -> str:
        cluster = self._cluster()
        if not cluster:
            raise Refusal(LATER, "the cluster's name is not known yet: try again later")
        return cluster


def _live(found: LivePrecision | None) -> LiveShare | None:
    if found is None:
        return None
    low, high = found.interval or (None, None)
    counts = {name: getattr(found, name) for name in ("judged", "wrong", "wrong_kept", "unappealed", "unknown")}
    return LiveShare(**counts, precision=found.precision, precision_low=low, precision_high=high)


def _demotion(found: Demotion | None, rule: Rule) -> dict[str, Any]:
    demoted = found is not None and not found.restored and rule.head.mode == "notify"
    return {"demoted": found.at, "demoted_why": found.words} if found is not None and demoted else {}


def _at_last_step(found: ReplayDocument, rule: Rule) -> ReplayedShare:
    last = max(step.after_s for step in rule.steps)
    row = next((one for one in found.rows if one.after_s >= last), found.rows[-1])
    return ReplayedShare(
        start=found.start, end=found.end, judged=row.judged, precision=row.precision, precision_low=row.precision_low,
        precision_high=row.precision_high,
    )  # fmt: skip


def _check(scope: Scope) -> None:
    if not scope.everything:
        raise Refusal(FORBIDDEN, "only operators may see rules")


def _rule(question: RuleQuestion) -> Rule:
    try:
        return rule_from_toml(question.text.encode("utf-8", "replace"), f"{question.name}.toml", question.name)
    except ConfigError as error:
        raise Refusal(BAD, str(error)) from error
