"""The agent's /metrics: the snapshot of the last tick."""

from collections.abc import Sequence

from prometheus_client.registry import Collector, CollectorRegistry

from gpuwaste.agent.metrics import Health, SnapshotCollector
from gpuwaste.net.exporter import Answers, MetricsServer, ProgramCollector


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
