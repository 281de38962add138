"""The advisor's parts, wired: what is loaded before it listens, and the threads beside the loop."""

import random
import socket
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gpuwaste.advice.adviser import Adviser
from gpuwaste.advice.policy.expected_waits import WaitTable
from gpuwaste.advice.policy.loading import load_policies
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.advice.predict.champion import Champion
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.advice.predict.trial import ModelTrial
from gpuwaste.advice.verdicts.verdict_batch import VerdictBatch
from gpuwaste.advisor.boot import MAX_ENDED, SAVED, booted, booted_by, saved
from gpuwaste.advisor.budget_store import BudgetCounts
from gpuwaste.advisor.counters import Counters
from gpuwaste.advisor.feed import NOT_SAVED, STALE, Feed, Pending, Saving, SlowTurn, Turn
from gpuwaste.advisor.freshness import Freshness
from gpuwaste.advisor.journal import VerdictJournal
from gpuwaste.advisor.judge import Judge
from gpuwaste.advisor.known_jobs import KnownJobs
from gpuwaste.advisor.metrics import AdvisorGauges, registry_of
from gpuwaste.advisor.request_handler import RequestHandler
from gpuwaste.advisor.server import IntakeLimits, Server
from gpuwaste.advisor.shadow_scoring import ShadowScoring
from gpuwaste.advisor.users import Users
from gpuwaste.advisor.verdict_outbox import VerdictOutbox
from gpuwaste.advisor.writer import Writer
from gpuwaste.core import log_event
from gpuwaste.core.advice_config import AdvisorConfig
from gpuwaste.core.clock import Clock
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, StoreError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.version import own_version
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.history.follow import Follower
from gpuwaste.jobs.history.state import HistoryState
from gpuwaste.net.batch import Envelope
from gpuwaste.net.exporter import MetricsServer, ProgramCollector
from gpuwaste.net.hub_client import SCORE_PATH, WAITS_PATH, HubClient
from gpuwaste.net.shipper import Shipper
from gpuwaste.plan.document import WaitTableAnswer
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.site.site_defaults import SiteDefaults

CORRECTIONS: Final = "corrections.npz"
TRIAL: Final = "challenger-corrections.npz"
OUTBOX: Final = "verdicts.sqlite"
SPOOL: Final = "spool"
WAITS_EVERY_S: Final = 60
_SHIP_EVERY_S: Final = 2.0  # so that a verdict is at the hub before its job is shown anywhere
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_SWAP_S: Final = 0.01  # between two looks whether the loop has taken another history
_POLICIES: Final = log_event.info("policies-in-force: {count} policies in force: {hash}")
_HISTORY: Final = log_event.info("history-loaded: job history up to event {seq}, {names} job names")
_RULE: Final = log_event.info("under-use-rule: the hub counts under-use by {rule}; history read again with it")
_RECOVERED: Final = log_event.info("spool-recovered: {verdicts} verdicts recovered from the spool")
_SPENT_UNKNOWN: Final = log_event.error(
    "budgets-unknown: cannot read what was spent today, budgets of policies begin at zero: {error}",
    "Check `[advisor] state_dir` and its disk.",
)


class AdvisorParts:
    """Everything but the socket. The constructor loads; `server`, `start` and `stop` come in this order."""

    def __init__(self, config: Config, cluster: str, slurm: SlurmClient, hub: HubClient, clock: Clock) -> None:
        """Load policies, model, history and what was left to send. Raises GpuwasteError."""
        advisor = config.advisor
        state_dir = Path(advisor.state_dir)
        self.version = own_version()
        self._config, self._cluster, self._slurm, self._hub, self._clock = config, cluster, slurm, hub, clock
        self._state_dir = state_dir
        self.counters = Counters()
        self._waits_due_us = 0
        policies = load_policies(Path(advisor.policies_dir))
        self._outbox = VerdictOutbox(state_dir / OUTBOX)
        self._journal = VerdictJournal(state_dir / SPOOL, clock.utc_us)
        self._accounts = BudgetCounts()
        models_dir = Path(config.common.models_dir)
        self._champion = Champion(models_dir, state_dir / CORRECTIONS, state_dir / TRIAL)
        self._trial = ModelTrial(models_dir, state_dir / TRIAL, baseline=config.models.renew)
        self._follower = self._history()
        self._freshness = Freshness(clock, advisor.stale_s)
        self._pending = Pending()
        # Chance lets rejects pass: it draws a sample and keeps no secret.
        chance = random.Random().random  # noqa: S311
        adviser = Adviser(policies, self._predictor(), spending=self._accounts, chance=chance)
        shadow = ShadowScoring(clock, self.counters.shadow, share=advisor.shadow_cpu_pct / 100)
        self.judge = Judge(cluster, adviser, self._accounts, clock, shadow)
        self._try_out()
        self._restore()

    def server(self, listener: socket.socket, allowed: set[int]) -> Server:
        """Return the loop with its desk, and make the threads that work beside it."""
        advisor, clock, bus = self._config.advisor, self._clock, Bus()
        self._jobs = KnownJobs()
        holder: list[Server] = []
        self._users = Users(lambda work: holder[0].call(work), clock)  # noqa: PLW0108 the server comes after
        self._users.with_groups = self.judge.adviser.policies.uses_groups
        desk = RequestHandler(
            self.judge, self._users, self._jobs,
            freshness=self._freshness, journal=self._journal, counters=self.counters, clock=clock,
        )  # fmt: skip
        self._server = Server(listener, desk, clock, IntakeLimits(advisor.max_queue, allowed=allowed), self.counters)
        holder.append(self._server)
        desk.reply = self._server.reply
        self._server.between(self._learn)
        self._shipper = self._make_shipper()
        self._writer = Writer(
            self._journal, self._outbox, self._server.call, clock,
            every_s=_SHIP_EVERY_S, moved=self._shipper.wake,
        )  # fmt: skip
        self._feed = Feed(
            self._hub, self._follower, self._pending, self._server.call, clock,
            bus=bus, every_s=advisor.history_every_s, state_dir=self._state_dir,
        )  # fmt: skip
        bus.subscribe(Turn, lambda _: self._look_at_champion())
        bus.subscribe(Turn, lambda _: self._look_at_rule())
        bus.subscribe(SlowTurn, lambda _: self._look_at_partitions())
        bus.subscribe(SlowTurn, lambda _: self._look_at_scores())
        bus.subscribe(Turn, lambda _: self._look_at_waits())
        bus.subscribe(Saving, lambda _: self._champion.save())
        bus.subscribe(Saving, lambda _: self._trial.save())
        self._exporter = self._make_exporter() if advisor.listen else None
        return self._server

    def start(self) -> None:
        """Start the threads."""
        for part in (self._users.worker, self._writer.worker, self._shipper, self._feed.worker, self._exporter):
            if part is not None:
                part.start()

    def stop(self) -> None:
        """End the threads and leave everything on the disk. The loop has ended before."""
        started = hasattr(self, "_feed")
        if started:
            self._feed.worker.stop()
            self._users.worker.end()
            self._writer.worker.stop()
            if self._exporter is not None:
                self._exporter.stop()
        self._journal.close()
        if started:
            self._writer.worker.turn()
            self._shipper.stop()
            self._save()
        self._outbox.close()

    def use_policies(self, policies: PolicySet) -> None:
        """Put other policies in force; for any thread."""

        def swap() -> None:
            self._advise_by(policies=policies)
            if policies.uses_groups and not self._users.with_groups:
                self._users.with_groups = True
                self._users.forget()
            _POLICIES.log(count=len(policies.in_force), hash=policies.hash[:12])

        self._server.call(swap)

    def use_limits(self, advisor: AdvisorConfig) -> None:
        """Put another length of the queue and age of the history in force; for any thread."""
        self._freshness.stale_s = advisor.stale_s
        self._server.limits.max_queue = advisor.max_queue

    def _history(self) -> Follower:
        """Return the history from the hub; where it is not reached what was saved here, else none: all is stale."""
        try:
            follower = booted(self._hub, self._state_dir, self._cluster)
        except Exception as error:  # noqa: BLE001 whatever the hub says, an advisor with an old history beats none
            if isinstance(error, GpuwasteError):
                STALE.log(error=error)
            else:
                BUG.log(error, what="job history of the hub")
            follower = saved(self._state_dir, self._cluster) or Follower(
                HistoryState(), self._cluster, max_ended=MAX_ENDED
            )
        _HISTORY.log(seq=follower.seq, names=len(follower.recall))
        return follower

    def _advise_by(self, **parts: Any) -> None:
        """Put another part of the adviser in its place, on the loop's thread."""
        self.judge.adviser = replace(self.judge.adviser, **parts)

    def _predictor(self) -> Predictor:
        return self._champion.predictor(self._follower)

    def _restore(self) -> None:
        """Take what a killed advisor left in the spool, and today's spending. Raises nothing."""
        writer = Writer(self._journal, self._outbox, lambda work: work(), self._clock, every_s=1.0)
        day = self._outbox.day_of(self._clock.utc_us())
        try:
            if moved := writer.move():
                _RECOVERED.log(verdicts=moved)
            self._accounts.restore(day, self._outbox.spent_on(day))
        except StoreError as error:
            _SPENT_UNKNOWN.log(error=error)

    def _learn(self) -> bool:
        """Take in one event, on the loop's thread; false where nothing is left."""
        item = self._pending.take()
        if item is None:
            return False
        if isinstance(item, int):
            self._freshness.current(item)
            return bool(self._pending)
        try:
            self._follower.apply((item,))
            self._jobs.note(item)
            if item.job is not None:
                self._users.ahead(item.job.user)
        except Exception as error:  # noqa: BLE001 an event that breaks us must not end the loop
            self.counters.troubles["event"] += 1
            self._follower.seq = max(self._follower.seq, item.seq)
            BUG.log(error, what=f"history event of {item.run_key}")
        return True

    def _look_at_champion(self) -> None:
        """Load another champion or challenger here; the loop takes it as a whole."""
        if self._champion.refresh():
            self._server.call(lambda: self._advise_by(predictor=self._predictor()))
            self._server.call(self._try_out)
        if self._trial.refresh():
            self._server.call(self._try_out)

    def _try_out(self) -> None:
        """Score what is on trial from now on, on the loop's thread."""
        self._trial.follow(self._follower)
        self.judge.shadow.models = self._trial.models(self._champion.hash)

    def _look_at_partitions(self) -> None:
        site = SiteDefaults.of(self._slurm.partitions(), self._slurm.config())
        self._server.call(lambda: self._advise_by(site=site))

    def _look_at_scores(self) -> None:
        """Ask the hub how often the policies' warnings and rejects were right."""
        standing = self._hub.get(SCORE_PATH).get("standing")
        found: dict[str, tuple[float, int]] = {}
        for name, row in standing.items() if isinstance(standing, dict) else ():
            if isinstance(row, dict) and isinstance(row.get("precision"), int | float) and type(row.get("n")) is int:
                found[str(name)] = (float(row["precision"]), row["n"])
        self._server.call(lambda: setattr(self._accounts, "standing", found))

    def _look_at_waits(self) -> None:
        """Ask the hub how long jobs wait, if a policy in force prints expected starts."""
        now_us = self._clock.mono_us()
        wanted = any(policy.expected_start for policy in self.judge.adviser.policies.in_force)
        if not wanted or now_us < self._waits_due_us:
            return
        self._waits_due_us = now_us + WAITS_EVERY_S * 1_000_000
        answer = convert(self._hub.get(WAITS_PATH), WaitTableAnswer, "the hub's waits")
        waits = WaitTable(answer.at, tuple(answer.rows))
        self._server.call(lambda: self._advise_by(waits=waits))

    def _look_at_rule(self) -> None:
        """Read the history again where the hub counts the use of GPUs by another rule than the history has it."""
        if self._feed.health is None or (under_use := self._feed.health.under_use) == self._follower.state.under_use:
            return
        fresh = booted_by(self._hub, self._state_dir, self._cluster, under_use)
        swapped = threading.Event()

        def swap() -> None:
            self._follower = fresh
            self._feed.follow(fresh)
            swapped.set()
            self._advise_by(predictor=self._predictor())
            self._try_out()
            _RULE.log(rule=under_use.text)

        self._server.call(swap)
        while not swapped.is_set() and not self._clock.wait(self._feed.worker.stopping, _SWAP_S):
            pass

    def _save(self) -> None:
        try:
            self._follower.save(self._state_dir / SAVED, still=True)
            self._champion.save()
            self._trial.save()
        except GpuwasteError as error:
            NOT_SAVED.log(error=error)

    def _make_shipper(self) -> Shipper[VerdictBatch]:
        boot_id = _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else "unknown"
        envelope = Envelope(self._cluster, socket.gethostname(), boot_id, self.version)
        return Shipper(
            self._outbox, self._hub.post_verdicts, envelope, self._clock,
            every_s=_SHIP_EVERY_S, what="verdicts",
        )  # fmt: skip

    def _make_exporter(self) -> MetricsServer:
        advisor = self._config.advisor
        registry = registry_of(self.counters, self._standing)
        registry.register(ProgramCollector(self.version, self._clock.utc_us, self._state_dir))
        return MetricsServer(
            advisor.listen, registry, section="advisor", tls_cert=advisor.tls_cert, tls_key=advisor.tls_key
        )

    def _standing(self) -> AdvisorGauges:
        champion, policies, challenger = self._champion.bundle, self.judge.adviser.policies, self._trial.challenger
        age_us = self._freshness.age_us()
        now_s = self._clock.utc_us() / 1e6
        try:
            outbox = self._outbox.depth()
        except StoreError:
            outbox = None
        return AdvisorGauges(
            version=self.version,
            queue=self._server.depth,
            model=None if champion is None else (champion.manifest.name, champion.hash),
            model_age_s=None if champion is None else now_s - champion.manifest.created_utc,
            history_age_s=None if age_us is None else age_us / 1e6,
            event=self._follower.seq,
            pending=len(self._pending),
            outbox=outbox,
            spooled=len(self._journal.left()),
            lost=self._journal.lost,
            policies=(len(policies.in_force), policies.hash),
            names=len(self._follower.recall),
            feed_failures=self._feed.failures,
            stale_s=self._freshness.stale_s,
            on_trial=None if challenger is None else (challenger.bundle.manifest.name, challenger.bundle.hash),
        )
