"""The agent's /metrics: the snapshot of the last tick."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from prometheus_client.registry import Collector, CollectorRegistry

from gpuwaste.agent.agent_health import HealthSink
from gpuwaste.agent.agent_ports import AgentPorts
from gpuwaste.agent.hour_aggregator import GAP_INTERVALS
from gpuwaste.agent.jobstats_metrics import JobstatsCollector, Owners
from gpuwaste.agent.node_metrics import Health, SnapshotCollector
from gpuwaste.agent.node_store import RAW, NodeStore
from gpuwaste.agent.outbox import HourShipping
from gpuwaste.agent.sample_server import SampleServer
from gpuwaste.agent.sampler import Sampler
from gpuwaste.agent.sampling import Sampling
from gpuwaste.agent.snapshot import LatestSnapshot
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Parts
from gpuwaste.core.version import own_version
from gpuwaste.net.metrics_server import Answers, ExporterPart, MetricsServer, ProgramCollector
from gpuwaste.net.sample_query import SAMPLES_PATH


class Exporter(MetricsServer):
    """Serves the snapshot. Raises ConfigError as MetricsServer does."""

    def __init__(
        self,
        listen: str,
        health: Health,
        *,
        tls_cert: str = "",
        tls_key: str = "",
        token_file: str = "",
        more: Sequence[Collector] = (),
        answers: Answers | None = None,
    ) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(SnapshotCollector(health))
        registry.register(ProgramCollector(health.version, health.now_us, health.state_dir))
        for collector in more:
            registry.register(collector)
        super().__init__(
            listen,
            registry,
            section="agent",
            tls_cert=tls_cert,
            tls_key=tls_key,
            token_file=token_file,
            answers=answers,
        )


class AgentExporter(ExporterPart):
    """Serves the agent's figures, and samples to the hub, at `[agent] listen`."""

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an agent. Raises ConfigError."""
        agent, snapshot, owners = parts.get(Config).agent, parts.get(LatestSnapshot), parts.find(Owners)
        if not agent.listen:
            return cls(None)
        jobstats = JobstatsCollector(lambda: snapshot.view, None if owners is None else owners.uid_of)
        server = Exporter(
            agent.listen,
            _health(parts),
            tls_cert=agent.tls_cert,
            tls_key=agent.tls_key,
            token_file=agent.metrics_token_file,
            more=[jobstats] if agent.jobstats_metrics else [],
            answers=_sample_answers(parts),
        )
        return cls(server)


def _health(parts: Parts) -> Health:
    agent, ports, snapshot = parts.get(Config).agent, parts.get(AgentPorts), parts.get(LatestSnapshot)
    gpu_health, shipping = parts.get(HealthSink), parts.get(HourShipping)

    def sampler() -> Sampler:
        return parts.get(Sampling).sampler

    return Health(
        node=ports.site.node,
        version=own_version(),
        boot_us=ports.clock.utc_us(),
        interval_s=agent.interval_s,
        view=lambda: snapshot.view,
        collectors=lambda: sampler().health,
        outbox_rows=shipping.depth,
        released_s=lambda: sampler().released_for_s,
        missed_ticks=lambda: sampler().missed,
        invalid_values=lambda: sampler().invalid_values,
        now_us=ports.clock.utc_us,
        gpu_health=lambda: gpu_health.states,
        sinks=lambda: sampler().sinks_ok,
        state_dir=Path(agent.state_dir),
    )


def _sample_answers(parts: Parts) -> Answers:
    """Return the handlers of the hub's requests for samples; none where nobody may request them."""
    agent, ports, store = parts.get(Config).agent, parts.get(AgentPorts), parts.get(NodeStore)
    if ports.askers is None:
        return {}
    server = SampleServer(
        Path(agent.state_dir) / RAW,
        ports.site.node,
        ports.askers,
        kept_days=lambda: store.retention_days,
        gap_us=int(agent.interval_s * GAP_INTERVALS * 1e6),
    )
    return {SAMPLES_PATH: server.answer}
