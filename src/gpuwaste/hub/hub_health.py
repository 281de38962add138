"""The hub's health: the answer of GET /v1/health, and the size of the store."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.version import own_version
from gpuwaste.hub.inbox_parts import InboxParts
from gpuwaste.hub.ingest import Ingest
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.source_comparison import SourceComparison
from gpuwaste.net.batch import PROTOCOL_MAX, PROTOCOL_MIN
from gpuwaste.net.health_types import AccountingHealth, HealthAnswer
from gpuwaste.store.hub.hub_store import HubStore

_REPORTING_S: Final = 3600.0


class HubHealth(Part):
    """Collects health and figures from the parts."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.get(HubStore)
        self._clock = parts.get(HostPorts).clock

    def answer(self) -> HealthAnswer:
        """Return the answer of GET /v1/health."""
        get, now = self._parts.get, self._clock.utc_us() / 1e6
        cluster, inbox = get(ClusterFacts).known_cluster, get(InboxParts).health()
        if not self._store.alone:
            return HealthAnswer(
                role="stands by",
                version=own_version(),
                cluster=cluster,
                now=now,
                protocol=(PROTOCOL_MIN, PROTOCOL_MAX),
                under_use=self._store.under_use,
                inbox=inbox,
            )
        importer, prediction = get(Importer), get(Predictions).health()
        status = importer.status
        ok = not status.failures and status.read_until is not None
        return HealthAnswer(
            status="ok" if ok and not prediction.error and not inbox.late else "degraded",
            version=own_version(),
            cluster=cluster,
            now=now,
            protocol=(PROTOCOL_MIN, PROTOCOL_MAX),
            accounting=AccountingHealth(ok=ok, lag_s=importer.lag_s(), failures=status.failures, error=status.error),
            prediction=prediction,
            ledger=get(Judging).health(),
            under_use=get(Predictions).under_use,
            inbox=inbox,
            sources=get(SourceComparison).health(),
            nodes_reporting=sum(age_s < _REPORTING_S for age_s in get(Ingest).counts.batch_ages_s().values()),
        )

    def metrics(self) -> Iterator[Metric]:
        """Yield the size of the store."""
        counts = self._store.counts()
        counts.pop("last_event")
        yield from store_families(counts, self._store.size_b())


def store_families(rows: Mapping[str, int], size_b: int) -> Iterator[Metric]:
    """Yield how many rows a store has by table, and its bytes."""
    tables = GaugeMetricFamily("gpuwaste_hub_store_rows", "Rows in the store, by table.", labels=["table"])
    for table, count in sorted(rows.items()):
        tables.add_metric([table], count)
    yield tables
    yield GaugeMetricFamily("gpuwaste_hub_store_bytes", "Size of the store's files.", size_b)
