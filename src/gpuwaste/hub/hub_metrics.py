"""The hub's figures for Prometheus: those of requests, and the families of every part. No label holds a user's name."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Self

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from gpuwaste.core.parts import Part, Parts
from gpuwaste.store.hub.hub_store import HubStore

_FIRST: Final = (
    "rows", "quarantined_rows", "request_seconds", "commits", "committed_batches", "put_off", "predictions", "verdicts",
    "rejected_verdicts", "notices", "model_sentences", "serving", "inbox_batches", "inbox_age_seconds",
    "inbox_taken_batches", "inbox_merged_batches", "store_rows", "store_bytes", "batch_age_seconds",
    "accounting_lag_seconds", "accounting_success", "map_questions", "kept_verdicts", "model_info", "model_age_seconds",
    "prediction_success",
)  # fmt: skip
_PLACES: Final = {f"gpuwaste_hub_{name}": place for place, name in enumerate(_FIRST)}


class HubMetrics(Part):
    """Counts requests, and collects the parts' figures."""

    def __init__(self, parts: Callable[[], Iterable[Part]], serves: Callable[[], bool] = lambda: True) -> None:
        """Where `serves` is false a hub stands by: it has only counters."""
        self._parts = parts
        self._serves = serves
        self.registry = CollectorRegistry()
        self._requests = Histogram(
            "gpuwaste_hub_request_seconds",
            "Time from the first line of a request to its answer, by route and status.",
            ["method", "route", "status"],
            registry=None,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
        )
        self._put_off = Counter(
            "gpuwaste_hub_put_off", "Batches that were answered with 503 because of load.", registry=None
        )
        self.registry.register(self)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        store = parts.get(HubStore)
        return cls(parts.all, lambda: store.alone)

    def put_off(self) -> None:
        """Note a batch that was not admitted."""
        self._put_off.inc()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note an answered request."""
        self._requests.labels(method, route, str(status)).observe(seconds)

    def text(self) -> bytes:
        """Return the exposition."""
        return generate_latest(self.registry)

    def counted(self) -> Iterator[Metric]:
        """Yield what was counted of requests, and whether the hub serves."""
        yield from self._requests.collect()
        yield from self._put_off.collect()
        yield GaugeMetricFamily("gpuwaste_hub_serving", "1 for the active hub, 0 for a standby.", self._serves())

    def collect(self) -> Iterable[Metric]:
        """Return the families of every part, in the order of the page of metrics."""
        parts = tuple(self._parts())
        found = [family for part in parts for family in part.counted()]
        if self._serves():
            found += [family for part in parts for family in part.metrics()]
        return sorted(found, key=lambda family: _PLACES.get(family.name, len(_PLACES)))

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering must not read the gauges."""
        yield from ()
