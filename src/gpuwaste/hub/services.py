"""What the routes have at hand: the hub's parts, and what a client may take."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from gpuwaste.act.actions.hub.service import ActionService
from gpuwaste.act.events.event_reads import EventReads
from gpuwaste.act.events.inlet_parts import InletParts
from gpuwaste.act.notify.parts import NotifyParts
from gpuwaste.act.notify.service import NoticeService
from gpuwaste.act.rules.rule_reads import RuleReads
from gpuwaste.advice.predict.predictions import Predictions
from gpuwaste.advice.renewal.renewal import Renewal
from gpuwaste.advice.verdicts.verdict_reads import VerdictReads
from gpuwaste.core.parts import Parts
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.estimate.program_runs_reads import ProgramRuns
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.backup import Backups
from gpuwaste.hub.hub_health import HubHealth
from gpuwaste.hub.ingest import Ingest
from gpuwaste.hub.metrics import HubMetrics
from gpuwaste.hub.per_user_limit import PerUserLimit
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.jobs.gpu_assignments import GpuAssignments
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.curves.service import Curves
from gpuwaste.ledger.disputes.disputes import Disputes
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.net.health import HealthAnswer
from gpuwaste.plan.expectations import Expectations
from gpuwaste.plan.recorded_plans import RecordedPlans
from gpuwaste.sim.simulation_reads import SimulationReads
from gpuwaste.views.view_reads import ViewReads

_FAILURES_QUIET_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes call."""

    identity: Identity
    ingest: Ingest
    reads: DocumentQueries
    now: NowReads
    cluster_map: GpuAssignments
    metrics: HubMetrics
    predictions: Predictions
    expectations: Expectations
    recorded_plans: RecordedPlans
    program_runs: ProgramRuns
    verdicts: VerdictReads
    verdict_ingest: VerdictIngest
    notices: NoticeService
    actions: ActionService
    backups: Backups
    curves: Curves
    disputes: Disputes
    views: ViewReads
    events: EventReads
    inlets: InletParts
    simulations: SimulationReads
    rules: RuleReads
    renewal: Renewal
    health: Callable[[], HealthAnswer]
    visitors: Visitors
    failures: EventLog
    """Logs requests that cannot be answered: one line of a kind in a minute, however many ask."""
    turns: PerUserLimit = field(default_factory=PerUserLimit)

    @classmethod
    def of(cls, parts: Parts) -> Self:
        """Return those of a hub."""
        return cls(
            identity=parts.get(Identity),
            ingest=parts.get(Ingest),
            reads=parts.get(DocumentQueries),
            now=parts.get(NowReads),
            cluster_map=parts.get(GpuAssignments),
            metrics=parts.get(HubMetrics),
            predictions=parts.get(Predictions),
            expectations=parts.get(Expectations),
            recorded_plans=parts.get(RecordedPlans),
            program_runs=parts.get(ProgramRuns),
            verdicts=parts.get(VerdictReads),
            verdict_ingest=parts.get(VerdictIngest),
            notices=parts.get(NotifyParts).service,
            actions=parts.get(ActionService),
            backups=parts.get(Backups),
            curves=parts.get(Curves),
            disputes=parts.get(Disputes),
            views=parts.get(ViewReads),
            events=parts.get(EventReads),
            inlets=parts.get(InletParts),
            simulations=parts.get(SimulationReads),
            rules=parts.get(RuleReads),
            renewal=parts.get(Renewal),
            health=parts.get(HubHealth).answer,
            visitors=parts.get(Visitors),
            failures=EventLog(parts.get(HostPorts).clock, _FAILURES_QUIET_S),
        )
