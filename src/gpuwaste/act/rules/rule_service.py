"""RuleService: rules in the hub: each minute a pass over the facts; intents are stored and firings reported."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Self

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpuwaste.act.actions.action_manager import ActionManager
from gpuwaste.act.actions.action_parts import ActionParts
from gpuwaste.act.keeps.keep_store import KeepStore
from gpuwaste.act.keeps.kept_runs import Keeps
from gpuwaste.act.rules.live_precision import LivePrecision
from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.act.rules.rule_demotions import RuleDemotions
from gpuwaste.act.rules.rule_facts import ABOUTS, About
from gpuwaste.act.rules.rule_file import RulesInUse
from gpuwaste.act.rules.rule_ladder import GAP_S, Ladder
from gpuwaste.act.rules.rule_matching import StepsSpent
from gpuwaste.act.rules.rule_moments import (
    ModelMoment,
    model_facts,
    moments_of,
    node_facts,
    running_facts,
    waiting_facts,
)
from gpuwaste.act.rules.rule_pass import KEPT_S, Ladders, PassInstant, RulePass, Withdrawals, evaluate, judged
from gpuwaste.act.rules.rule_store import RuleStore, StoredLadder, event, stored
from gpuwaste.advice.hold_out import HoldOut
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.units import DAY_S
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.events.envelope import event_of
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.events.kind_catalogue import kinds_of
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.now.now_document import Now
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.net.health_types import PredictionHealth
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

MAX_EVENTS: Final = 10_000  # in one pass
_GOOD_PASSES: Final = 3  # a pass's result is valid for the time of this many passes
_GOOD_S: Final = 60.0  # but at least this long
_NOT_EVALUATED: Final = log_event.warning(
    "rules-not-evaluated: cannot evaluate rules: {error}",
    "The store or its disk cannot be written. No rule acts meanwhile; after ten minutes a condition must hold anew from"
    " the start.",
)
_FIRED: Final = log_event.info("rule-fired: rule {rule} ({mode}): step {step}, {action}, {subject}")

_RULES_S: Final = 60.0  # between two evaluations of the rules; less if accounting is read more often


class RuleService(Part):
    """`worker` runs it; any thread may read `rules`, `figures` and `store`."""

    def __init__(  # noqa: PLR0917 the hub's parts that it needs
        self,
        store: HubStore,
        clock: Clock,
        cluster: Callable[[], str],
        now: Callable[[], Now],
        sink: ActionManager,
        directory: Path,
        every_s: float,
        xids: Collection[int] = (),
        model: Callable[[], ModelMoment] = ModelMoment,
        hold_out: HoldOut | None = None,
        keeps: Keeps | None = None,
    ) -> None:
        """Read the rules; `every_s` is the time between two passes.

        `xids` are the Xid errors that blame a node, `model` returns the model that the hub predicts with.
        """
        self.store = RuleStore(store)
        self.rules = RulesInUse(directory)
        self.figures = RuleFigures()
        self.demotions = RuleDemotions(store)
        self._hub_store = store
        self._events = EventStore(store, clock)
        self._clock = clock
        self._cluster = cluster
        self._now = now
        self._sink = sink
        self._xids = xids
        self._model = model
        self._hold_out = hold_out or HoldOut()
        self._every_s = max(every_s, 1.0)
        self.keeps = keeps or Keeps(KeepStore(store, clock))
        self._known: dict[tuple[str, str], Ladders] | None = None
        self._withdrawals = Withdrawals()
        self.worker = Worker("rules", self._turn, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        config, predictions = parts.get(Config), parts.get(Predictions)
        return cls(
            parts.get(HubStore),
            parts.get(HostPorts).clock,
            parts.get(ClusterFacts).known,
            parts.get(NowReads).take,
            parts.get(ActionParts).manager,
            Path(config.hub.rules_dir),
            min(config.hub.sacct_every_s, _RULES_S),
            xids=[int(number) for number in config.agent.health_xids if number.isdecimal()],
            model=lambda: _in_use(predictions.health()),
            hold_out=parts.get(HoldOut),
            keeps=parts.get(Keeps),
        )

    def step(self) -> list[RulePass]:
        """Evaluate the rules once. Raises StoreError."""
        self.rules.refresh()
        self.keeps.spare([rule.name for rule in self.rules.rules if not rule.head.keep])
        cluster, rules = self._cluster(), self._judged_rules()
        if not cluster or not rules:
            self._sink.drop(judged(self._sink.waiting(), (), {}, self.rules.removed).dropped)
            return []
        began = self._clock.mono_us()
        now = self._clock.utc_s()
        last = self.store.last_pass()
        gap = last is None or not 0 <= now - last <= GAP_S
        kept = self._kept(now if last is None else min(last, now))
        at = PassInstant(now, datetime.fromtimestamp(now), gap, self._hold_out, kept)  # noqa: DTZ006 the site's time
        ladders, dropped = self._ladders(rules, now)
        spent = self._spent(rules, now)
        told, seq = self._told(rules)
        passes: list[RulePass] = []
        known, self._known = self._known, None  # after an error the ladders in memory are not those that were stored
        for about in ABOUTS:
            those = [rule for rule in rules if rule.head.about == about]
            if those:
                with self._hub_store.reader() as db:
                    self.make_facts(db, about, cluster, now)
                    passes += evaluate(db, those, ladders, spent, at, told)
        self._take(passes, ladders, dropped, cluster, at, seq)
        self._known = known
        self._note(passes, now, (self._clock.mono_us() - began) / 1e6)
        return passes

    def _judged_rules(self) -> list[Rule]:
        """Return the rules with their modes, once those that are misjudged too often are back in mode notify."""
        rules = self.rules.rules
        if mails := self.demotions.judge(rules, self._clock.utc_s()):
            self._sink.intend(mails)
        return self.demotions.in_force(rules)

    def make_facts(self, db: Database, about: About, cluster: str, now: int) -> None:
        """Make temp table facts of now. Raises StoreError."""
        if about == "running":
            running_facts(db, moments_of(self._now().runs, now))
        elif about == "waiting":
            waiting_facts(db, cluster, now)
        elif about == "node":
            node_facts(db, cluster, now, self._xids)
        else:
            model_facts(db, cluster, now, self._model())

    def ladder(self, rule: Rule, subject: str) -> Ladder | None:
        """Return the ladder of a rule for a run or node; None: not begun, or the file is another one."""
        known = self._known or {}
        return known.get((rule.name, rule.hash), {}).get(subject)

    def metrics(self) -> Iterator[Metric]:
        """Return the metrics."""
        yield from families(self.figures, len(self.rules.rules), len(self.rules.errors))
        yield from precision_families(self.demotions.live)

    def _ladders(self, rules: Sequence[Rule], now: int) -> tuple[dict[str, Ladders], set[tuple[str, str]]]:
        """Return the ladders of each rule, and those of other versions, which are dropped."""
        fresh = {(rule.name, rule.hash) for rule in rules}
        if self._known is None:
            known: dict[tuple[str, str], Ladders] = defaultdict(dict)
            for row in self.store.ladders():
                known[row.rule, row.hash][row.subject] = Ladder(row.began_utc, row.step, row.step_utc, row.round)
            self._known = known
        else:
            fresh -= self._known.keys()
        # If a file is removed and put back, actions from before do not count as those from after.
        for rule, digest, subject, last_utc in self.store.last_steps(fresh, now - KEPT_S):
            subjects = self._known.setdefault((rule, digest), {})
            subjects.setdefault(subject, Ladder(None, step_utc=last_utc, round=last_utc))
        current = {(rule.name, rule.hash) for rule in rules}
        dropped = {(key[0], subject) for key, found in self._known.items() if key not in current for subject in found}
        self._known = {key: found for key, found in self._known.items() if key in current}
        return {rule.name: self._known.setdefault((rule.name, rule.hash), {}) for rule in rules}, dropped

    def _kept(self, last: int) -> dict[str, int]:
        """Return until when runs are kept, now or at some time since the last pass."""
        return {key: keep.until for key, keep in self.keeps.since(last).items()}

    def _spent(self, rules: Sequence[Rule], now: int) -> Mapping[str, StepsSpent]:
        hashes, spent = {rule.name: rule.hash for rule in rules}, {rule.name: StepsSpent() for rule in rules}
        for row in self.store.spent(now - DAY_S):
            # Done steps count for any version of the file; steps that another version only recorded affected nobody.
            if row["rule"] in spent and (row["done"] or hashes[row["rule"]] == row["hash"]):
                spent[row["rule"]].steps += row["steps"]
                spent[row["rule"]].users[row["user"]] += row["steps"]
        return spent

    def _told(self, rules: Sequence[Rule]) -> tuple[Collection[str], int | None]:
        """Return the subjects of the events that rules wait for, and the last event read."""
        patterns = {one for rule in rules if not rule.periodic for one in rule.head.on}
        if not patterns:
            return (), None
        after = self.store.last_event()
        if after is None:
            return (), self._events.last(0)
        page = self._events.page(after, MAX_EVENTS)
        kinds, found = kinds_of(sorted(patterns), "on"), map(event_of, page.events)
        return {event.subject for event in found if event.kind in kinds}, page.until

    def _take(  # noqa: PLR0917 what a pass has changed
        self,
        passes: Sequence[RulePass],
        ladders: Mapping[str, Ladders],
        dropped: Collection[tuple[str, str]],
        cluster: str,
        at: PassInstant,
        seq: int | None,
    ) -> None:
        """Pass on the intents, then store the pass: after a crash between the two the intents are known already."""
        firings = [firing for one in passes for firing in one.firings]
        # Facts may change while an action waits for approval: the rule acts on the current ones.
        if over := self._withdrawals.due(passes, ladders, at):
            self._sink.withdraw(over)
        self._sink.intend([firing.intent for firing in firings if firing.acts])
        found = judged(self._sink.waiting(), passes, ladders, self.rules.removed)
        self._sink.drop(found.dropped)
        changed, gone = _changes(passes, ladders)
        rows = [stored(firing, cluster) for firing in firings]
        told = [event(firing, cluster) for firing in firings]
        self.store.save(at.now, seq, changed, gone | set(dropped), rows, told)
        self._sink.confirm(found.wanted, max(_GOOD_PASSES * self._every_s, _GOOD_S))
        for firing in firings:
            intent = firing.intent
            _FIRED.log(
                rule=intent.rule,
                mode=firing.rule.head.mode,
                step=firing.step + 1,
                action=intent.kind,
                subject=intent.subject,
            )

    def _note(self, passes: Sequence[RulePass], now: int, seconds: float) -> None:
        figures = self.figures
        figures.passed_utc, figures.seconds = now, seconds
        figures.matched = {one.rule.name: one.matched for one in passes}
        figures.left = {one.rule.name: dict(one.left) for one in passes}
        for one in passes:
            for firing in one.firings:
                figures.steps[one.rule.name, "intended" if firing.acts else "recorded"] += 1

    def _turn(self) -> float:
        try:
            self.step()
        except GpuwasteError as error:
            _NOT_EVALUATED.log(error=error)
        return self._every_s


def _changes(
    passes: Sequence[RulePass], ladders: Mapping[str, Ladders]
) -> tuple[list[StoredLadder], set[tuple[str, str]]]:
    changed: list[StoredLadder] = []
    gone: set[tuple[str, str]] = set()
    for one in passes:
        rule = one.rule
        for subject in one.changed:
            ladder = ladders[rule.name].get(subject)
            if ladder is None:
                gone.add((rule.name, subject))
            else:
                steps = (ladder.began, ladder.step, ladder.step_utc, ladder.round)
                changed.append(StoredLadder(rule.name, rule.hash, subject, *steps))
    return changed, gone


def _in_use(found: PredictionHealth) -> ModelMoment:
    return ModelMoment(found.model, found.model_hash, found.created)


def precision_families(live: Mapping[str, LivePrecision]) -> Iterator[Metric]:
    """Yield the metrics of the rules' live precision."""
    share = GaugeMetricFamily(
        "gpuwaste_hub_rule_precision",
        "Share of the judged runs of the last 90 days that a rule judged right, 0 to 1; absent: none is judged.",
        labels=["rule"],
    )
    runs = GaugeMetricFamily(
        "gpuwaste_hub_rule_judged_runs", "Runs that a rule hit in the last 90 days.", labels=["rule", "outcome"]
    )
    for rule, found in sorted(live.items()):
        if found.precision is not None:
            share.add_metric([rule], found.precision)
        right = found.judged - found.wrong
        for outcome, count in (("right", right), ("wrong", found.wrong), ("unknown", found.unknown)):
            runs.add_metric([rule, outcome], count)
    yield share
    yield runs


@dataclass(slots=True)
class RuleFigures:
    """The figures of the last pass, for /metrics and the list of rules; `left` counts why subjects were skipped."""

    passed_utc: int = 0
    seconds: float = 0.0
    matched: dict[str, int] = field(default_factory=dict)
    left: dict[str, dict[str, int]] = field(default_factory=dict)
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)


def families(figures: RuleFigures, rules: int, refused: int) -> Iterator[Metric]:
    """Yield the metrics; `refused` counts files with an error."""
    yield GaugeMetricFamily("gpuwaste_hub_rules", "Rules in use.", rules)
    yield GaugeMetricFamily(
        "gpuwaste_hub_rules_refused", "Files of rules that are not used: they have errors.", refused
    )
    yield GaugeMetricFamily("gpuwaste_hub_rules_pass_seconds", "Duration of the last pass of rules.", figures.seconds)
    yield GaugeMetricFamily(
        "gpuwaste_hub_rules_passed_timestamp_seconds", "When rules were evaluated last.", figures.passed_utc
    )
    steps = CounterMetricFamily(
        "gpuwaste_hub_rule_steps", "Steps of rules since the start of the hub.", labels=["rule", "outcome"]
    )
    for (rule, outcome), count in sorted(figures.steps.items()):
        steps.add_metric([rule, outcome], count)
    yield steps
