"""The hub's own figures for Prometheus: base units, nodes by name, never a user's."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpuwaste.act.notify.notice_store import NoticeStatus
from gpuwaste.core.clock import Clock
from gpuwaste.core.parts import Part, Parts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.verdict import ACTIONS
from gpuwaste.views.rewriter import RESULTS

MAX_NODES: Final = 16_384  # with a batch age each; without check_origin a node's name is what its agent writes


@dataclass(frozen=True, slots=True)
class Gauges:
    """What is read at each scrape; None is "not known" and gives no series."""

    table_rows: Mapping[str, int] = field(default_factory=dict)
    store_b: int = 0
    accounting_lag_s: float | None = None
    accounting_ok: bool = False
    map_questions: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[tuple[str, bool], int] = field(default_factory=dict)  # kept, by action and whether a run told it
    model: tuple[str, str] | None = None  # name and hash of the bundle in use
    model_age_s: float | None = None
    model_ok: bool | None = None  # None: prediction is not installed
    serving: bool = True  # of a hub that stands by nothing else is known


class HubMetrics(Part):
    """Counters that handlers feed, and gauges read at each scrape through `read`."""

    def __init__(self, clock: Clock, read: Callable[[], Gauges] = Gauges) -> None:
        self._clock = clock
        self.read = read
        self.more: list[Callable[[], Iterable[Metric]]] = []  # families of other parts
        self.standing_by: list[Callable[[], Iterable[Metric]]] = []  # those of a hub that stands by too
        self._lock = threading.Lock()
        self._last_batch_us: dict[str, int] = {}
        self.registry = CollectorRegistry()
        self._rows = Counter("gpuwaste_hub_rows", "Hour rows received, by result.", ["result"], registry=self.registry)
        self._bad_rows = Counter(
            "gpuwaste_hub_quarantined_rows",
            "Rows of a source that could not be stored.",
            ["source"],
            registry=self.registry,
        )
        self._requests = Histogram(
            "gpuwaste_hub_request_seconds",
            "Time from the first line of a request to its answer, by route and status.",
            ["method", "route", "status"],
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
        )
        self._commits = Counter(
            "gpuwaste_hub_commits", "Commits of hour rows; one can contain the batches of many nodes.",
            registry=self.registry,
        )  # fmt: skip
        self._committed = Counter(
            "gpuwaste_hub_committed_batches", "Batches of hour rows that were committed.", registry=self.registry
        )
        self._put_off = Counter(
            "gpuwaste_hub_put_off", "Batches that were answered with 503 because of load.",
            registry=self.registry,
        )  # fmt: skip
        self._predictions = Counter(
            "gpuwaste_hub_predictions", "Requests that got a prediction.", registry=self.registry
        )
        self._verdicts = Counter(
            "gpuwaste_hub_verdicts", "Verdicts received, by action; each id once.", ["action"], registry=self.registry
        )
        self._rejected_verdicts = Counter(
            "gpuwaste_hub_rejected_verdicts", "Verdicts received that are invalid.", registry=self.registry
        )
        self._notices = Counter(
            "gpuwaste_hub_notices", "Mails to users and staff, by status.", ["status"],
            registry=self.registry,
        )  # fmt: skip
        for status in (NoticeStatus.SENT, NoticeStatus.LATER, NoticeStatus.FAILED, NoticeStatus.UNCLEAR):
            self._notices.labels(status)
        for action in ACTIONS:
            self._verdicts.labels(action)
        self._model_sentences = Counter(
            "gpuwaste_hub_model_sentences",
            "Sentences of views that the language model was asked for, by result; all but worded stay the rules'.",
            ["result"],
            registry=self.registry,
        )
        for result in RESULTS:
            self._model_sentences.labels(result)
        for result in ("accepted", "changed", "rejected"):
            self._rows.labels(result)
        self._bad_rows.labels("sacct")
        self.registry.register(self)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HostPorts).clock)

    def batch(self, node: str, accepted: int, changed: int, rejected: int, age_us: int = 0) -> None:
        """Note a batch that was acknowledged `age_us` ago."""
        self._rows.labels("accepted").inc(accepted)
        self._rows.labels("changed").inc(changed)
        self._rows.labels("rejected").inc(rejected)
        with self._lock:
            self._last_batch_us.pop(node, None)
            self._last_batch_us[node] = self._clock.mono_us() - age_us
            if len(self._last_batch_us) > MAX_NODES:
                del self._last_batch_us[next(iter(self._last_batch_us))]  # the one that sent nothing for longest

    def rejected(self, rows: int) -> None:
        """Note rows of a batch that were rejected, where another hub counts the others."""
        self._rows.labels("rejected").inc(rows)

    def committed(self, batches: int) -> None:
        """Note a commit of hours rows, and how many batches were in it."""
        self._commits.inc()
        self._committed.inc(batches)

    def put_off(self) -> None:
        """Note a batch that was not let in."""
        self._put_off.inc()

    def verdicts(self, news: Mapping[str, int], rejected: int) -> None:
        """Note verdicts that were taken, by action, and those that were rejected."""
        for action, count in news.items():
            self._verdicts.labels(action).inc(count)
        self._rejected_verdicts.inc(rejected)

    def notice(self, status: str) -> None:
        """Note what became of one mail."""
        self._notices.labels(status).inc()

    def quarantined(self, source: str, rows: int) -> None:
        """Note rows that were kept aside."""
        self._bad_rows.labels(source).inc(rows)

    def predictions(self, count: int) -> None:
        """Note predictions that were given."""
        self._predictions.inc(count)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note an answered request."""
        self._requests.labels(method, route, str(status)).observe(seconds)

    def model_sentence(self, result: str) -> None:
        """Note what became of a sentence that the language model was asked for."""
        self._model_sentences.labels(result).inc()

    def batch_ages_s(self) -> dict[str, float]:
        """Return the seconds since each node's last batch; nodes that sent none since the start are not in it."""
        now = self._clock.mono_us()
        with self._lock:
            return {node: (now - at) / 1e6 for node, at in sorted(self._last_batch_us.items())}

    def text(self) -> bytes:
        """Return the exposition."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Yield what is read at each scrape."""
        gauges = self.read()
        yield GaugeMetricFamily(
            "gpuwaste_hub_serving", "1 for the hub that serves, 0 for one that stands by.", gauges.serving
        )
        for families in self.standing_by:
            yield from families()
        if not gauges.serving:
            return
        tables = GaugeMetricFamily("gpuwaste_hub_store_rows", "Rows in the store, by table.", labels=["table"])
        for table, count in sorted(gauges.table_rows.items()):
            tables.add_metric([table], count)
        yield tables
        yield GaugeMetricFamily("gpuwaste_hub_store_bytes", "Size of the store's files.", gauges.store_b)
        ages = GaugeMetricFamily("gpuwaste_hub_batch_age_seconds", "Time since a node's last batch.", labels=["node"])
        for node, age_s in self.batch_ages_s().items():
            ages.add_metric([node], age_s)
        yield ages
        lag = GaugeMetricFamily("gpuwaste_hub_accounting_lag_seconds", "Age of the newest accounting that was read.")
        if gauges.accounting_lag_s is not None:
            lag.add_metric([], gauges.accounting_lag_s)
        yield lag
        yield GaugeMetricFamily(
            "gpuwaste_hub_accounting_success",
            "Whether the last import from accounting succeeded.",
            gauges.accounting_ok,
        )
        asked = CounterMetricFamily(
            "gpuwaste_hub_map_questions", "Queries to slurmctld for the device map.", labels=["kind"]
        )
        for kind, count in sorted(gauges.map_questions.items()):
            asked.add_metric([kind], count)
        yield asked
        yield _verdict_metric(gauges)
        yield from _model_metrics(gauges)
        for families in self.more:
            yield from families()

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering must not read the gauges."""
        yield from ()


def _verdict_metric(gauges: Gauges) -> Metric:
    kept = GaugeMetricFamily(
        "gpuwaste_hub_kept_verdicts",
        "Verdicts in the store, by action and by whether a run with their token was found.",
        labels=["action", "joined"],
    )
    for (action, joined), count in sorted(gauges.verdicts.items()):
        kept.add_metric([action, "true" if joined else "false"], count)
    return kept


def _model_metrics(gauges: Gauges) -> Iterator[Metric]:
    info = GaugeMetricFamily("gpuwaste_hub_model_info", "The model in use; always 1.", labels=["name", "hash"])
    if gauges.model is not None:
        info.add_metric(gauges.model, 1)
    yield info
    age = GaugeMetricFamily("gpuwaste_hub_model_age_seconds", "Time since the model in use was made.")
    if gauges.model_age_s is not None:
        age.add_metric([], gauges.model_age_s)
    yield age
    good = GaugeMetricFamily(
        "gpuwaste_hub_prediction_success", "Whether the champion and the full job history are in use."
    )
    if gauges.model_ok is not None:
        good.add_metric([], gauges.model_ok)
    yield good
