"""`gpuwaste hub`: puts the parts together, runs them, and ends them in order."""

import logging
import os
import pwd
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config import Config, load_config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import UMASK, closed_directory
from gpuwaste.core.logs import set_up_logging
from gpuwaste.core.reload import Reloader
from gpuwaste.core.version import own_version
from gpuwaste.hub.app import build_app
from gpuwaste.hub.backup import Backups
from gpuwaste.hub.cluster_facts import ClusterFacts
from gpuwaste.hub.identity import Checkers, Identity
from gpuwaste.hub.importer import Importer
from gpuwaste.hub.ingest import Ingest
from gpuwaste.hub.judging import Judging
from gpuwaste.hub.map import ClusterMap
from gpuwaste.hub.memory import collect_seldom, use_few_arenas
from gpuwaste.hub.metrics import Gauges, HubMetrics
from gpuwaste.hub.notify.parts import NotifyParts, notify_parts
from gpuwaste.hub.notify.runner import Accounting
from gpuwaste.hub.predictions import Predictions
from gpuwaste.hub.reads import Reads
from gpuwaste.hub.roles import Roles
from gpuwaste.hub.roller import FIRST_S, Roller
from gpuwaste.hub.server import WebServer, listening, make_room, open_tcp, open_unix
from gpuwaste.hub.services import ServiceLimits, Services
from gpuwaste.hub.unaccounted import Unaccounted
from gpuwaste.hub.unaccounted_store import UnaccountedStore
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.hub.verdict_keeper import VerdictKeeper
from gpuwaste.hub.verdict_reads import VerdictReads
from gpuwaste.hub.waste_day import WasteDay
from gpuwaste.ingest.accounting import ImportSettings
from gpuwaste.slurm.choice import accounting_client
from gpuwaste.slurm.client import SlurmClient
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.verdict_store import VerdictStore
from gpuwaste.waste.settings import LedgerSettings
from gpuwaste.wire.batch import PROTOCOL_MAX, PROTOCOL_MIN
from gpuwaste.wire.identity import CredentialChecker, Via
from gpuwaste.wire.munge import Munge, MungeChecker
from gpuwaste.wire.notify import SILENT, SystemdNotifier
from gpuwaste.wire.program_metrics import ProgramCollector
from gpuwaste.wire.tokens import TokenChecker

STORE_NAME: Final = "hub.duckdb"
_REPORTING_S: Final = 3600.0
_PATIENCE_S: Final = 2.0  # at the end, for a thread that waits for a Slurm command
_THRESHOLDS: Final = (
    "agent.ship_every_s",
    *(f"hub.{field.name}" for field in fields(LedgerSettings) if field.name != "pending_s"),
)
_log = logging.getLogger(__name__)


class Hub:
    """The hub's parts, wired; `run` serves until a signal."""

    def __init__(self, config: Config, slurm: SlurmClient, clock: Clock, checkers: Checkers) -> None:
        hub = config.hub
        self._config = config
        self.clock = clock
        self.store = HubStore.open(Path(hub.state_dir) / STORE_NAME, clock, hub.memory_mb)
        self.site = ClusterFacts(slurm, clock, config.common.cluster)
        wanted = LedgerSettings.from_config(hub, config.agent.ship_every_s)
        self.judging = Judging(self.store, wanted, clock, self._judge_by)
        ledger = self.judging.standing
        self.metrics = HubMetrics(clock, self._gauges)
        self.waste_day = WasteDay(self.store, ledger, clock, by_account=hub.metrics_accounts)
        self.metrics.registry.register(ProgramCollector(own_version(), clock.utc_us, Path(hub.state_dir)))
        self.metrics.more += [self.waste_day.metrics, self.judging.metrics]
        self._roles = roles = Roles(slurm, clock, hub.staff_groups)
        self.identity = Identity(
            checkers,
            roles,
            self.site,
            agent_uid(hub.agent_user, checkers),
            agent_user=hub.agent_user,
        )
        verdict_store = VerdictStore(self.store, clock)
        self.verdicts = VerdictKeeper(verdict_store, clock, hub.verdict_days)
        self.roller = Roller(self.store, clock, hub.rollup_days)
        verdict_reads = VerdictReads(verdict_store, clock)
        self.cluster_map = ClusterMap(slurm, self.store, self.site, clock, hub.map_min_interval_s)
        self.importer = Importer(
            self.store,
            slurm,
            self.site,
            metrics=self.metrics,
            clock=clock,
            settings=_import_settings(config),
            learn=self.cluster_map.learn,
            tidy=self._tidy,
        )
        self.predictions = Predictions(
            self.store,
            self.site.cluster,
            clock=clock,
            metrics=self.metrics,
            models_dir=Path(config.common.models_dir),
            state_dir=Path(hub.state_dir),
            policies_dir=Path(config.advisor.policies_dir),
            defaults=lambda: self.importer.defaults,
        )
        self.notify: NotifyParts = notify_parts(
            config.notify, self.store, ledger, clock, self._accounting, self.metrics.notice
        )
        self.unaccounted = Unaccounted(UnaccountedStore(self.store), clock, hub.unaccounted_days)
        self._ingest = Ingest(
            self.store,
            self.identity,
            self.site,
            self.metrics,
            clock,
            check_origin=hub.check_origin,
            unaccounted=self.unaccounted,
        )
        self._reads = Reads(self.store, ledger, clock)
        self.backups = Backups(self.store, Path(hub.state_dir), clock, lambda: self.site.known_cluster)
        services = Services(
            self.identity,
            self._ingest,
            self._reads,
            self.cluster_map,
            self.metrics,
            self.predictions,
            verdict_reads,
            VerdictIngest(verdict_store, self.identity, self.site, self.metrics, clock),
            self.notify.service,
            self.backups,
            self.health,
        )
        self.app = build_app(services, own_version(), ServiceLimits(max_body_bytes=hub.max_body_bytes))

    def run(self, tcp: socket.socket | None, unix: socket.socket | None, notifier: SystemdNotifier = SILENT) -> None:
        """Serve until SIGTERM or SIGINT; the store is closed at the end.

        A sign of life needs both: the event loop that answers, and the importer's thread.
        """
        workers = [self.importer.worker, self.predictions.worker, self.roller.worker, self.judging.worker]
        if self.notify.notifier is not None:
            self.notify.notifier.begin()
            workers.append(self.notify.notifier.worker)
        hub = self._config.hub
        tls = (hub.tls_cert, hub.tls_key) if hub.tls_cert else None
        server = WebServer(self.app, tcp, unix, tls)
        server.serves = lambda: notifier.ready(f"store {hub.state_dir}")
        server.beat = lambda: notifier.alive() if self.importer.worker.alive else None
        try:
            self.cluster_map.start()
            for worker in workers:
                worker.start(FIRST_S if worker is self.roller.worker else 0.0)
            server.run()
        finally:
            notifier.stopping()
            for worker in workers:
                worker.end()
            self.cluster_map.stop()
            self.backups.stop()
            for worker in workers:
                # A Slurm command may hang; a write after the close fails, and is done again at the next start.
                worker.stop(_PATIENCE_S)
            self.store.close()

    def reloader(self, read: Callable[[], Config]) -> Reloader:
        """Return what puts a changed configuration in force: thresholds, who is staff, how often is asked."""
        return Reloader(
            self._config,
            read,
            ("common", "hub"),
            {
                _THRESHOLDS: lambda c: self.judging.judge_by(LedgerSettings.from_config(c.hub, c.agent.ship_every_s)),
                ("hub.staff_groups",): lambda c: self._roles.set_staff(c.hub.staff_groups),
                ("hub.check_origin",): lambda c: setattr(self._ingest, "check_origin", c.hub.check_origin),
                ("hub.rollup_days",): lambda c: setattr(self.roller, "days", c.hub.rollup_days),
                ("hub.unaccounted_days",): lambda c: setattr(self.unaccounted, "days", c.hub.unaccounted_days),
                ("hub.verdict_days",): lambda c: setattr(self.verdicts, "days", c.hub.verdict_days),
                ("hub.map_min_interval_s",): lambda c: setattr(
                    self.cluster_map, "min_interval_s", c.hub.map_min_interval_s
                ),
                ("hub.sacct_every_s", "hub.sacct_overlap_s", "hub.sacct_first_days"): lambda c: setattr(
                    self.importer, "settings", _import_settings(c)
                ),
            },
        )

    def health(self) -> dict[str, Any]:
        """Return the answer of GET /v1/health."""
        status = self.importer.status
        ok = not status.failures and status.read_until is not None
        ages = self.metrics.batch_ages_s()
        prediction = self.predictions.health()
        return {
            "status": "ok" if ok and not prediction["error"] else "degraded",
            "version": own_version(),
            "cluster": self.site.known_cluster,
            "now": self.clock.utc_us() / 1e6,
            "protocol": [PROTOCOL_MIN, PROTOCOL_MAX],
            "accounting": {
                "ok": ok,
                "lag_s": self.importer.lag_s(),
                "failures": status.failures,
                "error": status.error,
            },
            "prediction": prediction,
            "ledger": self.judging.health(),
            "nodes_reporting": sum(age_s < _REPORTING_S for age_s in ages.values()),
        }

    def _tidy(self) -> None:
        """Do what is due after an import. Raises StoreError."""
        self.verdicts.step()
        self.unaccounted.step(self.importer.status.read_until)
        self.waste_day.step()

    def _judge_by(self, settings: LedgerSettings) -> None:
        self._reads.judge_by(settings)
        self.waste_day.judge_by(settings)

    def _accounting(self) -> Accounting:
        status = self.importer.status
        return Accounting(status.read_until, bool(status.failures))

    def _gauges(self) -> Gauges:
        counts = self.store.counts()
        counts.pop("last_event")
        prediction = self.predictions.health()
        created = prediction["created"]
        return Gauges(
            counts,
            self.store.size_b(),
            self.importer.lag_s(),
            not self.importer.status.failures,
            dict(self.cluster_map.questions),
            self.verdicts.counts,
            (prediction["model"], prediction["model_hash"]) if prediction["model_hash"] else None,
            None if created is None else self.clock.utc_us() / 1e6 - created,
            None if prediction["state"] == "not installed" else not prediction["error"],
        )


def run_hub(config: Config, path: Path | None = None) -> int:
    """Run the hub until a signal; returns the exit code. Raises ConfigError, StoreError.

    `path` is the configuration file that SIGHUP reads again, None for the default one.
    """
    set_up_logging()
    os.umask(UMASK)
    make_room()
    use_few_arenas()
    closed_directory(Path(config.hub.state_dir), "[hub] state_dir")
    notifier = SystemdNotifier.from_environment()
    slurm = accounting_client(config)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # until the server takes signals over
    signal.signal(signal.SIGHUP, lambda *_: None)  # what it asks for is about to be done
    hub = Hub(config, slurm, SystemClock(), make_checkers(config))
    signal.signal(signal.SIGHUP, hub.reloader(lambda: load_config(path)).in_thread)
    tcp = open_tcp(config.hub.listen) if config.hub.listen else None
    unix = open_unix(Path(config.hub.socket)) if config.hub.socket else None
    if tcp is None and unix is None:
        raise ConfigError("[hub] listen and socket are both empty: set one of them")
    collect_seldom()
    places = " and ".join(listening(sock) for sock in (tcp, unix) if sock is not None)
    _log.info("gpuwaste hub %s serves on %s, store %s", own_version(), places, config.hub.state_dir)
    hub.run(tcp, unix, notifier)
    _log.info("the hub has stopped")
    return 0


def _import_settings(config: Config) -> ImportSettings:
    hub = config.hub
    return ImportSettings(hub.sacct_every_s, hub.sacct_overlap_s, hub.sacct_first_days)


def make_checkers(config: Config) -> dict[Via, CredentialChecker]:
    """Return how callers prove themselves: munge, unless the site has token files only; tokens where configured."""
    checkers: dict[Via, CredentialChecker] = {}
    if config.hub.node_tokens_file:
        checkers["token"] = TokenChecker(Path(config.hub.node_tokens_file))
    if not config.common.token_file:
        checkers["munge"] = MungeChecker(Munge(config.common.munge_socket))
    return checkers


def agent_uid(name: str, checkers: Checkers) -> int | None:
    """Return the uid that agents' credentials carry, None where no munge is used. Raises ConfigError."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError as error:
        if "munge" in checkers:
            raise ConfigError(f"[hub] agent_user: this host has no user {name!r}") from error
        return None
