"""The metrics of /metrics: a table that declares each, and the functions that fill them from the last snapshot.

Base units; a value that was never read is absent, not 0. One info series joins a job to a GPU, so that job ids do not
multiply the other series. No label is a user's name, and none is called `job` or `instance`, which Prometheus reserves.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gpuwaste.agent.agent_health import GpuHealth
from gpuwaste.agent.sampler import CollectorHealth
from gpuwaste.agent.snapshot import SnapshotView
from gpuwaste.ledger.gpu_sample import Sample

Row = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Health:
    """The values that the exporter reads from other parts of the agent at each scrape."""

    node: str
    version: str
    boot_us: int
    interval_s: float
    view: Callable[[], SnapshotView]
    collectors: Callable[[], list[CollectorHealth]]
    outbox_rows: Callable[[], int | None]
    released_s: Callable[[], float]
    missed_ticks: Callable[[], int]
    now_us: Callable[[], int]
    gpu_health: Callable[[], tuple[GpuHealth, ...]] = tuple
    sinks: Callable[[], Mapping[str, bool]] = dict
    invalid_values: Callable[[], Mapping[tuple[str, str, str], int]] = dict
    state_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric: its name, its meaning, its labels and the source of its values."""

    name: str
    kind: Literal["gauge", "counter"]
    text: str
    labels: tuple[str, ...]
    rows: Callable[[Health, SnapshotView], Iterator[Row]]


def _gpu_values(value: Callable[[Sample], float | None]) -> Callable[[Health, SnapshotView], Iterator[Row]]:
    """Return a function that yields one value for each GPU of the snapshot that has it."""

    def rows(health: Health, view: SnapshotView) -> Iterator[Row]:
        told: set[str] = set()
        for sample in view.seen.samples if view.seen else ():
            found = value(sample)
            if found is not None and sample.gpu_uuid not in told:
                told.add(sample.gpu_uuid)
                yield (sample.gpu_uuid, health.node), found

    return rows


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _gpu_info(health: Health, view: SnapshotView) -> Iterator[Row]:
    for gpu in view.seen.gpus if view.seen else ():
        minor = "" if gpu.minor is None else str(gpu.minor)
        facts = (str(gpu.index), minor, gpu.name, gpu.instance, gpu.parent_uuid, gpu.vendor)
        yield (gpu.uuid, health.node, *facts), 1.0


def _job_info(health: Health, view: SnapshotView) -> Iterator[Row]:
    for holding in view.seen.jobs.holdings if view.seen else ():
        yield (
            (holding.gpu_uuid, health.node, str(holding.job_id), str(holding.map_source), str(holding.confidence)),
            1.0,
        )


def _xids(health: Health, view: SnapshotView) -> Iterator[Row]:
    for (uuid, xid), count in sorted(view.seen.xids.items()) if view.seen else ():
        yield (uuid, health.node, str(xid)), float(count)


def _healthy(health: Health, _: SnapshotView) -> Iterator[Row]:
    for gpu in health.gpu_health():
        yield (gpu.uuid, health.node, gpu.state), float(gpu.state == "ok")


def _held(health: Health, view: SnapshotView) -> Iterator[Row]:
    for (uuid, use), us in sorted(view.held_us.items()):
        yield (uuid, health.node, use), us / 1e6


def _cpu_energy(health: Health, view: SnapshotView) -> Iterator[Row]:
    if view.seen and view.seen.packages:
        yield (health.node,), view.seen.packages.energy_j


def _lag(health: Health, view: SnapshotView) -> Iterator[Row]:
    if view.seen:
        yield (), max(0.0, (health.now_us() - view.seen.t_utc_us) / 1e6)


def _outbox(health: Health, _: SnapshotView) -> Iterator[Row]:
    depth = health.outbox_rows()
    if depth is not None:
        yield (), float(depth)


_GPU: Final = ("uuid", "node")
METRICS: Final = (
    MetricSpec(
        "gpuwaste_gpu_utilization_ratio",
        "gauge",
        "Share of the time since the previous sample in which a kernel ran on the GPU, 0 to 1.",
        _GPU,
        _gpu_values(lambda s: _scaled(s.util_pct, 0.01)),
    ),
    MetricSpec(
        "gpuwaste_gpu_sm_ratio",
        "gauge",
        "Share of the GPU's multiprocessors that were busy, 0 to 1 (Hopper and later).",
        _GPU,
        _gpu_values(lambda s: s.sm_ratio),
    ),
    MetricSpec(
        "gpuwaste_gpu_memory_used_bytes", "gauge", "GPU memory in use.", _GPU, _gpu_values(lambda s: s.mem_used_b)
    ),
    MetricSpec("gpuwaste_gpu_memory_total_bytes", "gauge", "GPU memory.", _GPU, _gpu_values(lambda s: s.mem_total_b)),
    MetricSpec(
        "gpuwaste_gpu_power_watts",
        "gauge",
        "Power that the GPU draws.",
        _GPU,
        _gpu_values(lambda s: _scaled(s.power_mw, 0.001)),
    ),
    MetricSpec(
        "gpuwaste_gpu_power_limit_watts",
        "gauge",
        "Power limit in force.",
        _GPU,
        _gpu_values(lambda s: _scaled(s.power_limit_mw, 0.001)),
    ),
    MetricSpec(
        "gpuwaste_gpu_energy_joules_total",
        "counter",
        "Energy since the driver was loaded.",
        _GPU,
        _gpu_values(lambda s: _scaled(s.energy_mj, 0.001)),
    ),
    MetricSpec(
        "gpuwaste_gpu_processes",
        "gauge",
        "Compute processes of the job that holds the GPU.",
        _GPU,
        _gpu_values(lambda s: s.procs),
    ),
    MetricSpec("gpuwaste_gpu_xid_errors_total", "counter", "Critical Xid errors.", (*_GPU, "xid"), _xids),
    MetricSpec(
        "gpuwaste_gpu_healthy",
        "gauge",
        "Whether the GPU is usable: 0 if the driver has lost it or it had an Xid of health_xids.",
        (*_GPU, "state"),
        _healthy,
    ),
    MetricSpec(
        "gpuwaste_gpu_info",
        "gauge",
        "Properties of a GPU or MIG instance; always 1.",
        (*_GPU, "index", "minor", "name", "mig_instance", "parent_uuid", "vendor"),
        _gpu_info,
    ),
    MetricSpec(
        "gpuwaste_gpu_job_info",
        "gauge",
        "The job that holds the GPU; always 1. Join on uuid.",
        (*_GPU, "jobid", "map_source", "confidence"),
        _job_info,
    ),
    MetricSpec(
        "gpuwaste_gpu_held_seconds_total",
        "counter",
        "Time for which a job held the GPU, by use: active, idle (0 percent), suspended, unknown. More idle than "
        "the ledger's waste, which leaves out idle times below a minute.",
        (*_GPU, "use"),
        _held,
    ),
    MetricSpec(
        "gpuwaste_cpu_energy_joules_total",
        "counter",
        "Energy of all CPU packages of the node, of jobs or not, as counted by the agent (RAPL); begins again at 0 "
        "with the agent and after a gap in the readings.",
        ("node",),
        _cpu_energy,
    ),
    MetricSpec(
        "gpuwaste_agent_collector_success",
        "gauge",
        "Whether the collector's last read succeeded.",
        ("collector",),
        lambda health, _: (((c.name,), float(c.ok)) for c in health.collectors()),
    ),
    MetricSpec(
        "gpuwaste_agent_collector_duration_seconds",
        "gauge",
        "Duration of the collector's last read.",
        ("collector",),
        lambda health, _: (((c.name,), c.duration_s) for c in health.collectors()),
    ),
    MetricSpec(
        "gpuwaste_agent_collector_failures_total",
        "counter",
        "Reads of the collector that failed since the agent's start. After a failure the next reads are up to five "
        "minutes apart.",
        ("collector",),
        lambda health, _: (((c.name,), float(c.failed_total)) for c in health.collectors()),
    ),
    MetricSpec(
        "gpuwaste_agent_invalid_values_total",
        "counter",
        "Values outside of the range that hardware can have, since the agent's start; they count as unknown. "
        "Reason: above, below, not_a_number.",
        ("collector", "quantity", "reason"),
        lambda health, _: ((key, float(count)) for key, count in sorted(health.invalid_values().items())),
    ),
    MetricSpec(
        "gpuwaste_agent_sink_success",
        "gauge",
        "Whether the last write succeeded: hours (rows for the hub), raw samples, health file.",
        ("sink",),
        lambda health, _: (((name,), float(ok)) for name, ok in sorted(dict(health.sinks()).items())),
    ),
    MetricSpec("gpuwaste_agent_sample_lag_seconds", "gauge", "Age of the newest sample.", (), _lag),
    MetricSpec(
        "gpuwaste_agent_interval_seconds",
        "gauge",
        "Configured time between two samples.",
        (),
        lambda health, _: iter([((), health.interval_s)]),
    ),
    MetricSpec("gpuwaste_agent_outbox_rows", "gauge", "Rows that the hub has not acknowledged.", (), _outbox),
    MetricSpec(
        "gpuwaste_agent_samples_total",
        "counter",
        "Samples taken since the agent's start.",
        (),
        lambda _, view: iter([((), float(view.samples_total))]),
    ),
    MetricSpec(
        "gpuwaste_agent_unattributed_samples_total",
        "counter",
        "Samples that are not attributed to a job because sources disagree.",
        ("reason",),
        lambda _, view: (((reason,), float(count)) for reason, count in sorted(view.unattributed.items())),
    ),
    MetricSpec(
        "gpuwaste_agent_missed_ticks_total",
        "counter",
        "Samples that were skipped because the previous one took too long.",
        (),
        lambda health, _: iter([((), float(health.missed_ticks()))]),
    ),
    MetricSpec(
        "gpuwaste_agent_released_seconds",
        "gauge",
        "Time until the GPUs are read again after a release; 0 while they are read.",
        (),
        lambda health, _: iter([((), health.released_s())]),
    ),
    MetricSpec(
        "gpuwaste_agent_start_time_seconds",
        "gauge",
        "When the agent started, in seconds since the epoch.",
        (),
        lambda health, _: iter([((), health.boot_us / 1e6)]),
    ),
)


class SnapshotCollector(Collector):
    """Renders the table above; a scrape accesses neither driver nor store."""

    def __init__(self, health: Health) -> None:
        self._health = health

    def collect(self) -> Iterator[Metric]:
        """Yield every metric that has a value."""
        view = self._health.view()
        for spec in METRICS:
            family = (GaugeMetricFamily if spec.kind == "gauge" else CounterMetricFamily)(
                spec.name, spec.text, labels=spec.labels
            )
            for labels, value in spec.rows(self._health, view):
                family.add_metric(labels, value)
            if family.samples:
                yield family
