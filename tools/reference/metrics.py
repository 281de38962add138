"""metrics.md, from the agent's declared table and from what the hub's registry gives at a scrape."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import CollectorRegistry

from gpuwaste.act.actions import action_parts
from gpuwaste.act.events import inlet_parts, outlet_sender
from gpuwaste.act.events.intake import InletState
from gpuwaste.act.events.outlet_sender import SenderState
from gpuwaste.act.notify.notify_parts import notice_counter
from gpuwaste.act.rules import rule_service
from gpuwaste.act.rules.live_precision import LivePrecision
from gpuwaste.act.rules.rule_service import RuleFigures
from gpuwaste.actor.action_poller import ActorCounters
from gpuwaste.actor.actor_daemon import ActorCollector
from gpuwaste.advice.predict.prediction_service import model_families, prediction_counter
from gpuwaste.advice.verdicts.verdict_store import kept_families
from gpuwaste.advisor.advisor_counters import Counters
from gpuwaste.advisor.advisor_metrics import AdvisorGauges, registry_of
from gpuwaste.agent import jobstats_metrics
from gpuwaste.agent.node_metrics import METRICS
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.parts import Part
from gpuwaste.hub import inbox_parts
from gpuwaste.hub.hub_health import store_families
from gpuwaste.hub.hub_metrics import HubMetrics
from gpuwaste.hub.ingest import BatchCounts
from gpuwaste.hub.sign_in.visitors import SignInMetrics
from gpuwaste.hub.verdict_ingest import verdict_counters
from gpuwaste.jobs.events.event_store import Behind
from gpuwaste.jobs.gpu_assignments import question_families
from gpuwaste.jobs.importers.accounting_importer import QuarantinedRows, accounting_families
from gpuwaste.ledger import judging
from gpuwaste.ledger.balance.balance_metrics import BalanceCounter
from gpuwaste.ledger.tally import Tally
from gpuwaste.ledger.waste_day import families
from gpuwaste.net.health_types import PredictionHealth
from gpuwaste.net.metrics_server import ProgramCollector
from gpuwaste.store.hub.inbox import InboxBacklog
from gpuwaste.views.view_reads import sentence_counter
from tools.reference.markdown import code, document, table

_INTRO: Final = """
Base units; a value that is not known is absent, not 0. No label holds a user's name, and none is called `job` or
`instance`: those are Prometheus' own. Rates and means are Prometheus' work.
"""
_JOIN: Final = """
One info series joins a job to its GPU, so that job ids do not multiply the other series. It stands first, since
jobs may share a GPU:

    gpuwaste_gpu_job_info * on (uuid, node) group_left () gpuwaste_gpu_utilization_ratio
"""


_JOBSTATS: Final = """
## With jobstats' names

Served by the agent beside its own where `[agent] jobstats_metrics` is true. `userid`, and with it `nvidia_gpu_jobUid`,
has a value only where `metrics_token_file` is set.
"""


class _MadeFamilies(Part):
    """The families of all parts, after one of each thing that they count."""

    def __init__(self, found: Sequence[Metric]) -> None:
        self._found = found

    def metrics(self) -> Sequence[Metric]:
        """Return them."""
        return self._found


class Row(NamedTuple):
    """One metric as the page prints it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str


def agent_rows() -> Iterator[Row]:
    """Yield the agent's metrics."""
    return (Row(spec.name, spec.kind, tuple(spec.labels), spec.text) for spec in METRICS)


def hub_rows() -> Iterator[Row]:
    """Yield the hub's metrics: its registry after one of each thing that it counts."""
    batches = BatchCounts(SystemClock())
    batches.batch("gpu1", 1, 0, 0)
    model = PredictionHealth(state="ready", model="name", model_hash="hash", created=0)
    standing = outlet_sender.OutletStanding("hook", SenderState(), Behind(0, None))
    inlet = InletState(refused=Counter(signature=1))
    fired = RuleFigures(steps=Counter({("idle", "recorded"): 1}))
    found = [
        *batches.counted(),
        *batches.ages(),
        *QuarantinedRows().counted(),
        *notice_counter().collect(),
        *prediction_counter().collect(),
        *sentence_counter().collect(),
        *(family for counter in verdict_counters() for family in counter.collect()),
        *inbox_parts.families(InboxBacklog(), 0, 0, 0),
        *store_families({"jobs": 1}, 1),
        *accounting_families(0.0, ok=True),
        *question_families({"job": 1}),
        *kept_families({("pass", True): 1}),
        *model_families(model, 0.0),
        *families({("gpu", ""): Tally()}),
        *BalanceCounter().metrics(),
        *judging.families(judging.JudgingProgress(0, 1.0), 0),
        *outlet_sender.families([standing], 0),
        *inlet_parts.families({"storage": inlet}, 0),
        *rule_service.families(fired, 1, 0),
        *rule_service.precision_families({"idle": LivePrecision(judged=1)}),
        *action_parts.families([("intended", "cancel", 1, 0)], 0, stopped=False),
    ]
    hub = HubMetrics(lambda: (hub, _MadeFamilies(found)))
    hub.request("GET", "/v1/health", 200, 0.001)
    SignInMetrics(hub.registry, lambda: 0)
    return _rows(hub.registry)


def actor_rows() -> Iterator[Row]:
    """Yield the actor's metrics: its registry after one of each thing that it counts."""
    counters = ActorCounters(answered_utc=0.0)
    counters.ended["cancel", "confirmed"] = counters.troubles["hub"] = 1
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ActorCollector(counters, SystemClock()))
    return _rows(registry)


def advisor_rows() -> Iterator[Row]:
    """Yield the advisor's metrics: its registry after one of each thing that it counts."""
    counters = Counters()
    counters.asked["judged"] = counters.troubles["judge"] = counters.verdicts["warn", "warn", "warn", ""] = 1
    counters.reported("c", {"asked": 1})
    standing = AdvisorGauges("", 0, ("", ""), 0.0, 0.0, 0, 0, 0, 0, 0, (1, ""), 0, 0, 3600.0)
    return _rows(registry_of(counters, lambda: standing))


def program_rows() -> Iterator[Row]:
    """Yield the metrics of each daemon."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ProgramCollector("", lambda: 0, Path("/")))
    return _rows(registry)


def jobstats_rows() -> Iterator[Row]:
    """Yield the metrics that have jobstats' names."""
    yield Row(jobstats_metrics.NUM_DEVICES[0], "gauge", (), jobstats_metrics.NUM_DEVICES[1])
    for name, text, _ in jobstats_metrics.METRICS:
        yield Row(name, "gauge", jobstats_metrics.LABELS, text)


def all_rows() -> Iterator[Row]:
    """Yield every metric but those with jobstats' names."""
    for rows in (program_rows, agent_rows, hub_rows, advisor_rows, actor_rows):
        yield from rows()


def page() -> str:
    """Return the page."""
    return document(
        "Metrics",
        _INTRO,
        "## Of all four\n\nServed by agent, hub, advisor and actor alike.",
        _table(program_rows()),
        "## Of the agent\n\n`/metrics` at `[agent] listen`, a snapshot: a scrape touches no GPU and no store.",
        _table(agent_rows()),
        _JOIN,
        "## Of the hub\n\n`/metrics` at `[hub] listen`.",
        _table(hub_rows()),
        "## Of the advisor\n\n`/metrics` at `[advisor] listen`.",
        _table(advisor_rows()),
        "## Of the actor\n\n`/metrics` at `[actor] listen`.",
        _table(actor_rows()),
        _JOBSTATS,
        _table(jobstats_rows()),
    )


def _rows(registry: CollectorRegistry) -> Iterator[Row]:
    for family in registry.collect():
        labels = {label: None for sample in family.samples for label in sample.labels if label != "le"}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield Row(name, family.type, tuple(labels), family.documentation)


def _table(rows: Iterator[Row]) -> str:
    cells = [(code(row.name), row.kind, " ".join(code(label) for label in row.labels), row.text) for row in rows]
    return table(("metric", "kind", "labels", "meaning"), cells)
