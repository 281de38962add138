"""The actor's /metrics. No label holds a user's name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from gpuwaste.actor.action_poller import ActionPoller, ActorCounters
from gpuwaste.actor.actor_settings import ActorPorts
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Parts
from gpuwaste.core.version import own_version
from gpuwaste.net.exporter import ExporterPart, ProgramCollector, exporter


class ActorExporter(ExporterPart):
    """Serves them where `[actor] listen` says."""

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an actor. Raises ConfigError."""
        actor, clock = parts.get(Config).actor, parts.get(ActorPorts).clock
        registry = CollectorRegistry(auto_describe=False)
        registry.register(ActorCollector(parts.get(ActionPoller).counters, clock))
        registry.register(ProgramCollector(own_version(), clock.utc_us, Path(actor.state_dir)))
        return cls(exporter(actor, registry, section="actor"))


class ActorCollector(Collector):
    """Yields the families of one scrape."""

    def __init__(self, counters: ActorCounters, clock: Clock) -> None:
        self._counters = counters
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield what there is now."""
        counters = self._counters
        ended = CounterMetricFamily("gpuwaste_actor_actions", "Actions, by kind and end.", labels=["kind", "status"])
        for labels, count in sorted(counters.ended.copy().items()):
            ended.add_metric(labels, count)
        yield ended
        troubles = CounterMetricFamily(
            "gpuwaste_actor_troubles",
            "What kept the actor from acting, by kind: hub, journal, clock, lease (another actor acts), or "
            "waits (an action was put off).",
            labels=["kind"],
        )
        for kind, count in sorted(counters.troubles.copy().items()):
            troubles.add_metric([kind], count)
        yield troubles
        yield GaugeMetricFamily("gpuwaste_actor_stopped", "1 while the stop file exists.", int(counters.stopped))
        yield GaugeMetricFamily("gpuwaste_actor_leased", "1 while this actor may act.", int(counters.leased))
        yield GaugeMetricFamily(
            "gpuwaste_actor_unreported", "1 while the end of an action waits for the hub.", int(counters.unreported)
        )
        age = GaugeMetricFamily("gpuwaste_actor_hub_age_seconds", "Time since the hub's last answer to a query.")
        if counters.answered_utc is not None:
            age.add_metric([], max(0.0, self._clock.utc_us() / 1e6 - counters.answered_utc))
        yield age

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering must not read."""
        yield from ()
