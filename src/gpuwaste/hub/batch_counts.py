"""BatchCounts: the hour rows that the hub receives, for Prometheus; nodes by name."""

import threading
from collections.abc import Iterator
from typing import Final

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric

from gpuwaste.core.clock import Clock

MAX_NODES: Final = 16_384  # with a batch age each; without check_origin a node's name is what its agent writes


class BatchCounts:
    """What any thread counts of batches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last_batch_us: dict[str, int] = {}
        self._rows = Counter("gpuwaste_hub_rows", "Hour rows received, by result.", ["result"], registry=None)
        for result in ("accepted", "changed", "rejected"):
            self._rows.labels(result)
        self._commits = Counter(
            "gpuwaste_hub_commits", "Commits of hour rows; one can contain the batches of many nodes.", registry=None
        )
        self._committed = Counter(
            "gpuwaste_hub_committed_batches", "Batches of hour rows that were committed.", registry=None
        )

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

    def batch_ages_s(self) -> dict[str, float]:
        """Return the seconds since each node's last batch; nodes that sent none since the start are not in it."""
        now = self._clock.mono_us()
        with self._lock:
            return {node: (now - at) / 1e6 for node, at in sorted(self._last_batch_us.items())}

    def counted(self) -> Iterator[Metric]:
        """Yield what was counted."""
        for counter in (self._rows, self._commits, self._committed):
            yield from counter.collect()

    def ages(self) -> Iterator[Metric]:
        """Yield the time since each node's last batch."""
        ages = GaugeMetricFamily("gpuwaste_hub_batch_age_seconds", "Time since a node's last batch.", labels=["node"])
        for node, age_s in self.batch_ages_s().items():
            ages.add_metric([node], age_s)
        yield ages
