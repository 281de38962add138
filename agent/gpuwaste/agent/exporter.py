"""The agent's /metrics: the snapshot of the last tick."""

from prometheus_client.registry import CollectorRegistry

from gpuwaste.agent.metrics import Health, SnapshotCollector
from gpuwaste.wire.exporter import MetricsServer


class Exporter(MetricsServer):
    """Serves the snapshot. Raises ConfigError as MetricsServer does."""

    def __init__(
        self, listen: str, health: Health, *, tls_cert: str = "", tls_key: str = "", token_file: str = ""
    ) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(SnapshotCollector(health))
        super().__init__(listen, registry, section="agent", tls_cert=tls_cert, tls_key=tls_key, token_file=token_file)
