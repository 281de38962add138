"""Judging: judges each settled run once, and all again after a change of thresholds, while ingest continues."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.worker import Bus, Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.judging_queue import JudgingRules, judge_next, prepare, stand, sum_days
from gpuwaste.ledger.ledger import THRESHOLDS, LedgerSettings
from gpuwaste.net.health_types import LedgerHealth
from gpuwaste.store.hub.hub_store import HubStore

EVERY_S: Final = 60.0
STEP_RUNS: Final = 8000  # judged at a time: their data takes memory, and each step has a fixed cost
_TELL_S: Final = 60.0
_NOT_JUDGED: Final = log_event.warning(
    "runs-not-judged: cannot judge settled runs, reports judge them on demand: {error}",
    "The disk of the hub is full, or its store is not writable. Reports are correct but slower.",
)
_PROGRESS: Final = log_event.info("runs-judged: {percent:.0f} % of {runs} runs judged")
_IN_USE: Final = log_event.info("thresholds-in-use: all runs judged by the new thresholds, reports use them now")


@dataclass(frozen=True, slots=True)
class JudgingProgress:
    """Until when all runs are judged, UTC seconds; the share judged by new thresholds, None if there are none."""

    judged_until: int | None = None
    anew: float | None = None


_THRESHOLDS: Final = (
    "agent.ship_every_s",
    *(f"hub.{name}" for name in THRESHOLDS),
)


class Judging(Part):
    """`worker` runs it; any thread may read the current settings, and set others."""

    def __init__(
        self,
        store: HubStore,
        settings: LedgerSettings,
        clock: Clock,
        changed: Callable[[LedgerSettings], None],
        step_runs: int = STEP_RUNS,
    ) -> None:
        """Set up; `changed` is called with new settings as soon as all runs are judged by them."""
        self._store = store
        self._clock = clock
        self._changed = changed
        self._step_runs = step_runs
        self._wanted = settings
        self._told_us = 0
        self.progress = JudgingProgress()
        self.worker = Worker("judging", self._turn, clock)
        with store.reader() as db:
            rules = JudgingRules.all(db)
        self.standing = LedgerSettings.from_text(rules[0].thresholds, settings.pending_s) if rules else settings

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        config, store, bus = parts.get(Config), parts.get(HubStore), parts.get(Bus)
        wanted = LedgerSettings.from_config(config.hub, config.agent.ship_every_s)
        part = cls(store, wanted, parts.get(HostPorts).clock, bus.publish)
        store.under_use = part.standing.under_use
        bus.subscribe(LedgerSettings, lambda ledger: setattr(store, "under_use", ledger.under_use))
        return part

    @property
    def reloads(self) -> Reloads:
        """Other thresholds: all runs are judged again."""
        return {_THRESHOLDS: lambda c: self.judge_by(LedgerSettings.from_config(c.hub, c.agent.ship_every_s))}

    def judge_by(self, settings: LedgerSettings) -> None:
        """Judge by other thresholds; the old results stay in use until all runs are judged again. Thread-safe."""
        self._wanted = settings
        self._set_standing(replace(self.standing, pending_s=settings.pending_s))
        self.worker.wake()

    def follow(self) -> None:
        """Use the thresholds now current in the store, where another process judges. Raises StoreError."""
        with self._store.reader() as db:
            standing = next(iter(JudgingRules.all(db)), None)
        if standing is not None and standing.thresholds != self.standing.to_text():
            self._set_standing(LedgerSettings.from_text(standing.thresholds, self._wanted.pending_s))

    def _turn(self) -> float:
        self.step(self.worker.stopping)
        return EVERY_S

    def step(self, stop: threading.Event) -> int:
        """Judge all settled runs; returns how many. Raises no error of the store."""
        judged = 0
        try:
            wanted = self._wanted
            with self._store.writing() as db:
                found = prepare(db, wanted)
            for rules in found:
                judged += self._judge(rules, wanted, stop)
                self._sum_days(rules.id, stop)
            if len(found) > 1 and not stop.is_set() and wanted is self._wanted:
                with self._store.writing() as db:
                    stand(db, found[1])
                self._set_standing(wanted)
                _IN_USE.log()
            self.progress = replace(self.progress, anew=None)
        except GpuwasteError as error:
            _NOT_JUDGED.log(error=error)
        return judged

    def _judge(self, rules: JudgingRules, wanted: LedgerSettings, stop: threading.Event) -> int:
        """Judge by these rules until no run is left."""
        settings = wanted if rules.same(wanted) else LedgerSettings.from_text(rules.thresholds, wanted.pending_s)
        total = 0
        while not stop.is_set() and wanted is self._wanted:
            now = self._clock.utc_s()
            rules, judged = judge_next(self._store, rules, settings, now, self._step_runs)
            total += judged
            self._note(rules, now)
            if not judged and rules.judged_until >= now - int(settings.pending_s):
                break
        return total

    def _sum_days(self, rules: int, stop: threading.Event) -> None:
        """Store the sums of the days that are judged."""
        with self._store.reader() as db:
            until = next((one.judged_until for one in JudgingRules.all(db) if one.id == rules), 0)
        sum_days(self._store, rules, until, stop)

    def _note(self, rules: JudgingRules, now: int) -> None:
        """Record the progress of judging, and log it at intervals."""
        if rules.standing:
            self.progress = replace(self.progress, judged_until=rules.judged_until)
        if self._clock.mono_us() < self._told_us:
            return
        with self._store.reader() as db:
            row = db.rows("judged_left", {"from_s": rules.judged_until, "to_s": now})[0]
        share = 1 - row["left_over"] / row["runs"] if row["runs"] else 1.0
        if not rules.standing:
            self.progress = replace(self.progress, anew=share)
        if row["left_over"] > self._step_runs:
            _PROGRESS.log(percent=100 * share, runs=row["runs"])
        self._told_us = self._clock.mono_us() + int(_TELL_S * 1e6)

    def _set_standing(self, settings: LedgerSettings) -> None:
        self.standing = settings
        self._changed(settings)

    def health(self) -> LedgerHealth:
        """Return its section of /v1/health."""
        return LedgerHealth(judged_until=self.progress.judged_until, judged_anew_ratio=self.progress.anew)

    def metrics(self) -> Iterator[Metric]:
        """Yield the metric families."""
        return families(self.progress, self._clock.utc_us() / 1e6)


def families(progress: JudgingProgress, now: float) -> Iterator[Metric]:
    """Yield the progress as metrics."""
    lag = GaugeMetricFamily(
        "gpuwaste_hub_judging_lag_seconds", "Time since the end up to which every run that ended is judged and stored."
    )
    if progress.judged_until is not None:
        lag.add_metric([], max(0.0, now - progress.judged_until))
    yield lag
    ratio = GaugeMetricFamily(
        "gpuwaste_hub_judged_anew_ratio", "Share of the runs that are judged by changed thresholds; 1 when all are."
    )
    ratio.add_metric([], 1.0 if progress.anew is None else progress.anew)
    yield ratio
