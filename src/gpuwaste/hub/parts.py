"""The hub's parts, put together in one place: by the daemon, and by tests with other ports."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Final

from gpuwaste.act.actions.hub.service import ActionService
from gpuwaste.act.events.event_reads import EventReads
from gpuwaste.act.events.event_service import SourceViews
from gpuwaste.act.notify.parts import NotifyParts, notify_parts
from gpuwaste.act.notify.runner import Accounting
from gpuwaste.act.reacting import reacting
from gpuwaste.act.rules.rule_reads import RuleReads
from gpuwaste.advice.predict.predictions import Predictions
from gpuwaste.advice.renewal.renewal import Renewal
from gpuwaste.advice.renewal.renewal_settings import RenewalSettings
from gpuwaste.advice.verdicts.verdict_counts import VerdictCounts
from gpuwaste.advice.verdicts.verdict_reads import VerdictReads
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.bus import Bus
from gpuwaste.core.config import Config, ModelsConfig
from gpuwaste.core.energy_config import EnergyConfig
from gpuwaste.core.event_log import EventLog
from gpuwaste.core.parts import Parts
from gpuwaste.core.reload import Reloader
from gpuwaste.core.version import own_version
from gpuwaste.estimate.program_runs_reads import ProgramRuns
from gpuwaste.hub.app import build_app
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.backup import Backups
from gpuwaste.hub.inbox_parts import InboxParts
from gpuwaste.hub.inbox_room import InboxRoom
from gpuwaste.hub.ingest import Ingest
from gpuwaste.hub.metrics import Gauges, HubMetrics
from gpuwaste.hub.mount import HubReading
from gpuwaste.hub.ports import HubPorts
from gpuwaste.hub.retention import TableRetention
from gpuwaste.hub.roles import Roles
from gpuwaste.hub.services import ServiceLimits, Services
from gpuwaste.hub.sign_in.visitors import make_visitors
from gpuwaste.hub.store_choice import STORE_NAME, open_store
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.gpu_assignments import GpuAssignments
from gpuwaste.jobs.importers.accounting import ImportSettings
from gpuwaste.jobs.importers.accounting_importer import Imported, Importer, RunsStored
from gpuwaste.jobs.importers.page_reader import PageReader
from gpuwaste.ledger.curves.agents import AgentSamples
from gpuwaste.ledger.curves.prometheus import PrometheusSamples
from gpuwaste.ledger.curves.service import Curves
from gpuwaste.ledger.disputes.dispute_store import DisputeStore
from gpuwaste.ledger.disputes.disputes import Disputes
from gpuwaste.ledger.energy.site_tariff import SiteTariff
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger_settings import LedgerSettings
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.roller import Roller
from gpuwaste.ledger.shared_runs import SharedRuns
from gpuwaste.ledger.unaccounted import Unaccounted
from gpuwaste.ledger.unaccounted_store import UnaccountedStore
from gpuwaste.ledger.waste_day import WasteDay
from gpuwaste.net.batch import PROTOCOL_MAX, PROTOCOL_MIN
from gpuwaste.net.health import AccountingHealth, HealthAnswer
from gpuwaste.net.program_metrics import ProgramCollector
from gpuwaste.plan.expectations import Expectations
from gpuwaste.plan.recorded_plans import RecordedPlans
from gpuwaste.sim.kept_simulations import DIRECTORY as SIMULATIONS
from gpuwaste.sim.simulation_reads import SimulationReads
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.views.language_model import LanguageModel
from gpuwaste.views.rewriter import Rewriter
from gpuwaste.views.view_reads import ViewReads

_FAILURES_QUIET_S: Final = 60.0
_REPORTING_S: Final = 3600.0
_THRESHOLDS: Final = (
    "agent.ship_every_s",
    *(f"hub.{field.name}" for field in fields(LedgerSettings) if field.name != "pending_s"),
)
_ENERGY: Final = tuple(f"energy.{field.name}" for field in fields(EnergyConfig))
_RENEWAL: Final = tuple(f"models.{field.name}" for field in fields(ModelsConfig) if field.name != "min_trial_days")


class Hub:
    """The hub's parts, wired: no thread runs and nothing listens yet."""

    def __init__(
        self, config: Config, ports: HubPorts, store: HubStore | None = None, inbox: InboxRoom | None = None
    ) -> None:
        """Put the parts together, around a store that another hub writes or else the hub's own, opened here.

        `inbox` is where batches go that this hub takes for the other one.

        Raises ConfigError, StoreError.
        """
        hub, slurm, clock, bus = config.hub, ports.slurm, ports.clock, Bus()
        self.config, self.clock = config, clock
        self.store = store or open_store(hub, clock)
        self.site = ClusterFacts(slurm, clock, config.common.cluster)
        wanted = LedgerSettings.from_config(hub, config.agent.ship_every_s)
        self.judging = Judging(self.store, wanted, clock, bus.publish)
        ledger = self.judging.standing
        self.store.under_use = ledger.under_use
        self.metrics = HubMetrics(clock, self._gauges)
        self.waste_day = WasteDay(self.store, ledger, clock, by_account=hub.metrics_accounts)
        self.metrics.registry.register(ProgramCollector(own_version(), clock.utc_us, Path(hub.state_dir)))
        self._roles = Roles(slurm, clock, hub.staff_groups, ports.groups_of)
        visitors = make_visitors(config, self._roles.scope, clock, self.metrics.registry)
        self.identity = Identity(
            ports.checkers,
            self._roles,
            self.site,
            ports.uid_of(hub.agent_user, ports.checkers),
            ports.name_of,
            agent_user=hub.agent_user,
            proxy_uids=visitors.proxy_uids,
            actor=(ports.actor_uid(hub.actor_user), hub.actor_user),
        )
        verdict_store = VerdictStore(self.store, clock)
        self.verdicts, self.retention = VerdictCounts(verdict_store, clock), TableRetention(self.store, clock, config)
        self.roller = Roller(self.store, clock, hub.rollup_days)
        self.pages = PageReader(self.store, Path(hub.state_dir) / STORE_NAME, clock)
        verdict_reads = VerdictReads(verdict_store, clock)
        self.cluster_map = GpuAssignments(slurm, self.store, self.site, clock, hub.map_min_interval_s)
        self.importer = Importer(
            self.store,
            slurm,
            self.site,
            metrics=self.metrics,
            clock=clock,
            settings=_import_settings(config),
            bus=bus,
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
            inbox=inbox,
        )
        self.shared_runs = SharedRuns(self.store, ledger, clock)
        self._reads = DocumentQueries(self.store, ledger, clock, self.shared_runs, SiteTariff(config.energy, clock))
        url, ca = hub.agent_url, config.common.hub_ca
        self.curves = Curves(
            self._reads,
            self.store,
            clock,
            agents=AgentSamples(url, ca, ports.agents, self.site, clock) if url and ports.agents is not None else None,
            prometheus=PrometheusSamples(hub.prometheus_url, ca) if hub.prometheus_url else None,
        )
        self.rewriter = (
            Rewriter(LanguageModel(config.analytics), clock, self.metrics.model_sentence)
            if config.analytics.model_url
            else None
        )
        views = ViewReads(self.store, ledger, clock, self.rewriter, self._reads.tariff)
        self.now = NowReads(self.store, self.site, verdict_reads, settings=ledger, clock=clock, importer=self.importer)
        seen = SourceViews(
            self.now.take, self.now.since, self.predictions.health, lambda: self.judging.standing.finding_min_s
        )
        cluster = lambda: self.site.known_cluster  # noqa: E731 asked for in many places below
        self.inlets, self.events, self.rescorer, self.actions, self.rules = reacting(
            config, self.store, clock, cluster, seen, self.predictions, self.notify.limits
        )
        self.renewal = Renewal(
            self.store, clock, cluster, Path(config.common.models_dir), RenewalSettings.from_config(config.models)
        )
        told = (self.waste_day, self.judging, self.events, self.inlets, self.actions, self.rules, self.renewal)
        self.metrics.more += [part.metrics for part in told]
        self.backups = Backups(self.store, Path(hub.state_dir), clock, cluster)
        self.services = Services(
            identity=self.identity,
            ingest=self._ingest,
            reads=self._reads,
            now=self.now,
            cluster_map=self.cluster_map,
            metrics=self.metrics,
            predictions=self.predictions,
            expectations=Expectations(self.store, slurm, clock, Path(config.common.models_dir)),
            recorded_plans=RecordedPlans(verdict_store, self.site, clock),
            program_runs=ProgramRuns(self.store, self.site.cluster),
            verdicts=verdict_reads,
            verdict_ingest=VerdictIngest(verdict_store, self.identity, self.site, self.metrics, clock, inbox=inbox),
            notices=self.notify.service,
            actions=ActionService(self.actions.manager, self.identity),
            backups=self.backups,
            curves=self.curves,
            disputes=Disputes(DisputeStore(self.store, clock)),
            views=views,
            events=EventReads(self.events, cluster, clock),
            inlets=self.inlets,
            rules=RuleReads(self.rules, self.store, cluster, clock, ledger),
            renewal=self.renewal,
            simulations=SimulationReads(Path(hub.state_dir) / SIMULATIONS),
            health=self.health,
            visitors=visitors,
            failures=EventLog(clock, _FAILURES_QUIET_S),
        )
        self.inbox = InboxParts(self.store, self.services, clock, inbox)
        self.app = build_app(
            self.services,
            own_version(),
            ports.limits or ServiceLimits(max_body_bytes=hub.max_body_bytes),
            HubReading(self._parts(), self.store, clock),
        )
        bus.subscribe(RunsStored, lambda event: self.cluster_map.learn(event.records))
        bus.subscribe(Imported, lambda _: self.verdicts.step())
        bus.subscribe(Imported, lambda event: self.unaccounted.step(event.read_until))
        bus.subscribe(Imported, lambda _: self.waste_day.step())
        bus.subscribe(Imported, lambda _: self.rescorer.worker.wake())
        bus.subscribe(LedgerSettings, lambda ledger: setattr(self.store, "under_use", ledger.under_use))
        for part in (self._reads, self.shared_runs, self.now, self.waste_day, views, self.services.rules):
            bus.subscribe(LedgerSettings, part.judge_by)

    def reloader(self, read: Callable[[], Config]) -> Reloader:
        """Return what puts a changed configuration in force: thresholds, who is staff, how often is asked."""
        return Reloader(
            self.config,
            read,
            ("common", "hub", "web", "analytics", "models", "energy"),
            {
                _THRESHOLDS: lambda c: self.judging.judge_by(LedgerSettings.from_config(c.hub, c.agent.ship_every_s)),
                _RENEWAL: lambda c: setattr(self.renewal, "settings", RenewalSettings.from_config(c.models)),
                _ENERGY: lambda c: self._reads.tariff.use(c.energy),
                ("hub.staff_groups",): lambda c: self._roles.set_staff(c.hub.staff_groups),
                ("hub.check_origin",): lambda c: setattr(self._ingest, "check_origin", c.hub.check_origin),
                ("hub.rollup_days",): lambda c: setattr(self.roller, "days", c.hub.rollup_days),
                ("hub.unaccounted_days",): lambda c: setattr(self.unaccounted, "days", c.hub.unaccounted_days),
                ("hub.verdict_days",): self.retention.use,
                ("hub.map_min_interval_s",): lambda c: setattr(
                    self.cluster_map, "min_interval_s", c.hub.map_min_interval_s
                ),
                ("hub.sacct_every_s", "hub.sacct_overlap_s", "hub.sacct_first_days"): lambda c: setattr(
                    self.importer, "settings", _import_settings(c)
                ),
            },
        )

    def health(self) -> HealthAnswer:
        """Return the answer of GET /v1/health."""
        if not self.store.alone:
            return HealthAnswer(
                role="stands by",
                version=own_version(),
                cluster=self.site.known_cluster,
                now=self.clock.utc_us() / 1e6,
                protocol=(PROTOCOL_MIN, PROTOCOL_MAX),
                under_use=self.store.under_use,
                inbox=self.inbox.health(),
            )
        status = self.importer.status
        ok = not status.failures and status.read_until is not None
        ages = self.metrics.batch_ages_s()
        prediction, inbox = self.predictions.health(), self.inbox.health()
        return HealthAnswer(
            status="ok" if ok and not prediction.error and not inbox.late else "degraded",
            version=own_version(),
            cluster=self.site.known_cluster,
            now=self.clock.utc_us() / 1e6,
            protocol=(PROTOCOL_MIN, PROTOCOL_MAX),
            accounting=AccountingHealth(
                ok=ok, lag_s=self.importer.lag_s(), failures=status.failures, error=status.error
            ),
            prediction=prediction,
            ledger=self.judging.health(),
            under_use=self.predictions.under_use,
            inbox=inbox,
            nodes_reporting=sum(age_s < _REPORTING_S for age_s in ages.values()),
        )

    def _parts(self) -> Parts:
        return Parts(self.config, self.store, *(getattr(self.services, one.name) for one in fields(Services)))

    def _accounting(self) -> Accounting:
        status = self.importer.status
        return Accounting(status.read_until, bool(status.failures))

    def _gauges(self) -> Gauges:
        if not self.store.alone:
            return Gauges(serving=False)
        counts = self.store.counts()
        counts.pop("last_event")
        prediction = self.predictions.health()
        return Gauges(
            counts,
            self.store.size_b(),
            self.importer.lag_s(),
            not self.importer.status.failures,
            dict(self.cluster_map.questions),
            self.verdicts.counts,
            (prediction.model, prediction.model_hash) if prediction.model_hash else None,
            None if prediction.created is None else self.clock.utc_us() / 1e6 - prediction.created,
            None if prediction.state == "not installed" else not prediction.error,
        )


def _import_settings(config: Config) -> ImportSettings:
    hub = config.hub
    return ImportSettings(hub.sacct_every_s, hub.sacct_overlap_s, hub.sacct_first_days)
