"""What the routes have at hand: the hub's parts, and what a client may take."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gpuwaste.act.actions.hub.service import ActionService
from gpuwaste.act.events.event_reads import EventReads
from gpuwaste.act.events.inlet_parts import InletParts
from gpuwaste.act.notify.service import NoticeService
from gpuwaste.act.rules.rule_reads import RuleReads
from gpuwaste.advice.predict.predictions import Predictions
from gpuwaste.advice.renewal.renewal import Renewal
from gpuwaste.advice.verdicts.verdict_reads import VerdictReads
from gpuwaste.core.event_log import EventLog
from gpuwaste.estimate.program_runs_reads import ProgramRuns
from gpuwaste.hub.admission_control import AdmissionLimits
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.backup import Backups
from gpuwaste.hub.ingest import Ingest
from gpuwaste.hub.metrics import HubMetrics
from gpuwaste.hub.per_user_limit import PerUserLimit
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.jobs.gpu_assignments import GpuAssignments
from gpuwaste.ledger.curves.service import Curves
from gpuwaste.ledger.disputes.disputes import Disputes
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.net.health import HealthAnswer
from gpuwaste.plan.expectations import Expectations
from gpuwaste.plan.recorded_plans import RecordedPlans
from gpuwaste.sim.simulation_reads import SimulationReads
from gpuwaste.views.view_reads import ViewReads


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What a client may take: bytes of a body, seconds for sending it, seconds of waiting for the map, the gate."""

    max_body_bytes: int = 1024 * 1024
    body_deadline_s: float = 30.0
    map_wait_s: float = 10.0
    gate: AdmissionLimits = field(default_factory=AdmissionLimits)


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
