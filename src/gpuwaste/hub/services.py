"""What the routes have at hand: the hub's parts, and what a client may take."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gpuwaste.core.event_log import EventLog
from gpuwaste.documents.health import HealthAnswer
from gpuwaste.hub.actions.service import ActionService
from gpuwaste.hub.authentication import Identity
from gpuwaste.hub.backup import Backups
from gpuwaste.hub.curves.service import Curves
from gpuwaste.hub.disputes import Disputes
from gpuwaste.hub.event_reads import EventReads
from gpuwaste.hub.expectations import Expectations
from gpuwaste.hub.gate import GateLimits
from gpuwaste.hub.ingest import Ingest
from gpuwaste.hub.inlet_parts import InletParts
from gpuwaste.hub.map import ClusterMap
from gpuwaste.hub.metrics import HubMetrics
from gpuwaste.hub.notify.service import NoticeService
from gpuwaste.hub.now import NowReads
from gpuwaste.hub.predictions import Predictions
from gpuwaste.hub.program_runs import ProgramRuns
from gpuwaste.hub.reads import Reads
from gpuwaste.hub.recorded_plans import RecordedPlans
from gpuwaste.hub.renewal.renewal import Renewal
from gpuwaste.hub.rule_reads import RuleReads
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.hub.simulation_reads import SimulationReads
from gpuwaste.hub.turns import Turns
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.hub.verdict_reads import VerdictReads
from gpuwaste.hub.view_reads import ViewReads


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What a client may take: bytes of a body, seconds for sending it, seconds of waiting for the map, the gate."""

    max_body_bytes: int = 1024 * 1024
    body_deadline_s: float = 30.0
    map_wait_s: float = 10.0
    gate: GateLimits = field(default_factory=GateLimits)


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes call."""

    identity: Identity
    ingest: Ingest
    reads: Reads
    now: NowReads
    cluster_map: ClusterMap
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
    turns: Turns = field(default_factory=Turns)
