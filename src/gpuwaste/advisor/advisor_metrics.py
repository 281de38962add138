"""The advisor's /metrics: its counters and its state. No label holds a user's name."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from gpuwaste.advisor.advisor_counters import BUCKETS_US, Counters
from gpuwaste.advisor.advisor_history import AdvisorHistory, Freshness, Pending
from gpuwaste.advisor.advisor_models import AdvisorModels
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.history_feed import Feed
from gpuwaste.advisor.submit_server import Server
from gpuwaste.advisor.verdict_journal import VerdictJournal
from gpuwaste.advisor.verdict_judge import Judge
from gpuwaste.advisor.verdict_outbox import VerdictOutbox
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Parts
from gpuwaste.core.version import own_version
from gpuwaste.net.metrics_server import ExporterPart, ProgramCollector, exporter

_MICRO: Final = 1e6


@dataclass(frozen=True, slots=True)
class AdvisorGauges:
    """Values read at each scrape; ages are in seconds, None where there is nothing."""

    version: str
    queue: int
    model: tuple[str, str] | None
    model_age_s: float | None
    history_age_s: float | None
    event: int
    pending: int
    outbox: int | None
    spooled: int
    lost: int
    policies: tuple[int, str]
    names: int
    feed_failures: int
    stale_s: float
    on_trial: tuple[str, str] | None = None


class AdvisorExporter(ExporterPart):
    """Serves the metrics at `[advisor] listen`."""

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor. Raises ConfigError."""
        advisor, ports = parts.get(Config).advisor, parts.get(AdvisorPorts)
        registry = registry_of(parts.get(Counters), lambda: _standing(parts))
        registry.register(ProgramCollector(own_version(), ports.clock.utc_us, ports.state_dir))
        return cls(exporter(advisor, registry, section="advisor"))


class AdvisorCollector(Collector):
    """Yields the metric families of one scrape."""

    def __init__(self, counters: Counters, standing: Callable[[], AdvisorGauges]) -> None:
        self._counters = counters
        self._standing = standing

    def collect(self) -> Iterator[Metric]:
        """Yield the current values."""
        counters, now = self._counters, self._standing()
        yield _info(now)
        yield _trial(now)
        yield _latency(counters)
        verdicts = CounterMetricFamily(
            "gpuwaste_advisor_verdicts",
            "Verdicts, by action, would-be action, the policy's mode, and the rule that held it back.",
            labels=["action", "would_be", "mode", "held"],
        )
        for labels, count in sorted(counters.verdicts.copy().items()):
            verdicts.add_metric(labels, count)
        yield verdicts
        yield _counted(
            "gpuwaste_advisor_requests",
            "Requests by result: judged, not read, stale (judged, without advice), late, "
            "behind, refused (peer not permitted), bad (no frame), unreadable, silent, broken off, full, "
            "unknown job, unjudged.",
            "result",
            counters.asked,
        )
        yield _counted(
            "gpuwaste_advisor_shadow",
            "Verdicts for which models on trial were also scored, by result: scored, late (no time "
            "before the reply is due), budget (no CPU left), failed.",
            "result",
            counters.shadow,
        )
        yield _counted("gpuwaste_advisor_troubles", "Errors, by kind.", "kind", counters.troubles)
        plugin = CounterMetricFamily(
            "gpuwaste_advisor_plugin_events",
            "Counters of the submit plugins since slurmctld's start; opened: the breaker.",
            labels=["via", "event"],
        )
        for key, count in sorted(counters.plugin.copy().items()):
            plugin.add_metric(key, count)
        yield plugin
        yield from _gauges(now)

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering must not read the gauges."""
        yield from ()


def registry_of(counters: Counters, standing: Callable[[], AdvisorGauges]) -> CollectorRegistry:
    """Return the registry that is served."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(AdvisorCollector(counters, standing))
    return registry


def _latency(counters: Counters) -> HistogramMetricFamily:
    total, buckets = 0, []
    for bound, count in zip((*BUCKETS_US, None), tuple(counters.buckets), strict=True):
        total += count
        buckets.append(("+Inf" if bound is None else repr(bound / _MICRO), float(total)))
    return HistogramMetricFamily(
        "gpuwaste_advisor_latency_seconds",
        "Time from the connection to the reply, in the advisor.",
        buckets,
        counters.sum_us / _MICRO,
    )


def _info(now: AdvisorGauges) -> GaugeMetricFamily:
    info = GaugeMetricFamily(
        "gpuwaste_advisor_info",
        "Version, model in use (empty: job history only) and hash of the policies; always 1.",
        labels=["version", "model", "model_hash", "policies_hash"],
    )
    info.add_metric([now.version, *(now.model or ("", "")), now.policies[1]], 1)
    return info


def _trial(now: AdvisorGauges) -> GaugeMetricFamily:
    info = GaugeMetricFamily(
        "gpuwaste_advisor_challenger_info",
        "Model on trial, scored in shadow; always 1.",
        labels=["model", "model_hash"],
    )
    if now.on_trial is not None:
        info.add_metric(now.on_trial, 1)
    return info


def _counted(name: str, text: str, label: str, counts: dict[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for key, count in sorted(counts.copy().items()):
        family.add_metric([key], count)
    return family


def _gauges(now: AdvisorGauges) -> Iterator[Metric]:
    values: dict[str, tuple[str, float | None]] = {
        "queue_depth": ("Requests that wait.", now.queue),
        "model_age_seconds": ("Time since the model in use was made.", now.model_age_s),
        "history_age_seconds": (
            "Age of the job history; above stale_s jobs are accepted without advice.",
            now.history_age_s,
        ),
        "history_limit_seconds": (
            "Age of the job history above which jobs are accepted without advice: stale_s.",
            now.stale_s,
        ),
        "history_event": ("Number of the last event of the job history.", now.event),
        "history_pending": ("Events of the job history that are not processed yet.", now.pending),
        "history_names": ("Pairs of user and job name whose last runs are stored.", now.names),
        "history_failures": ("Consecutive failed queries to the hub.", now.feed_failures),
        "outbox_verdicts": ("Verdicts that the hub has not acknowledged.", now.outbox),
        "spool_files": ("Files of verdicts that wait for the outbox.", now.spooled),
        "verdicts_lost": ("Verdicts that were lost because neither disk nor memory had space.", now.lost),
        "policies": ("Policies in force.", now.policies[0]),
    }
    for name, (text, value) in values.items():
        family = GaugeMetricFamily(f"gpuwaste_advisor_{name}", text)
        if value is not None:
            family.add_metric([], value)
        yield family


def _standing(parts: Parts) -> AdvisorGauges:
    """Return the current state of the parts."""
    models, freshness, journal = parts.get(AdvisorModels), parts.get(Freshness), parts.get(VerdictJournal)
    follower, policies = parts.get(AdvisorHistory).follower, parts.get(Judge).adviser.policies
    champion, challenger = models.champion.bundle, models.trial.challenger
    age_us, now_s = freshness.age_us(), parts.get(AdvisorPorts).clock.utc_us() / 1e6
    try:
        outbox = parts.get(VerdictOutbox).depth()
    except StoreError:
        outbox = None
    return AdvisorGauges(
        version=own_version(),
        queue=parts.get(Server).depth,
        model=None if champion is None else (champion.manifest.name, champion.hash),
        model_age_s=None if champion is None else now_s - champion.manifest.created_utc,
        history_age_s=None if age_us is None else age_us / 1e6,
        event=follower.seq,
        pending=len(parts.get(Pending)),
        outbox=outbox,
        spooled=len(journal.left()),
        lost=journal.lost,
        policies=(len(policies.in_force), policies.hash),
        names=len(follower.recall),
        feed_failures=parts.get(Feed).failures,
        stale_s=freshness.stale_s,
        on_trial=None if challenger is None else (challenger.bundle.manifest.name, challenger.bundle.hash),
    )
