"""The sinks that keep: raw samples into the node store, hours into the outbox."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuwaste.agent.hour_aggregator import HourAggregator
from gpuwaste.agent.meter import MeterTick
from gpuwaste.agent.node_store import NodeStore
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.outbox import Outbox
from gpuwaste.ledger.hour import AllocationHour


class RawSink:
    """Keeps every sample in the node store."""

    name = "raw samples"

    def __init__(self, store: NodeStore) -> None:
        self._store = store

    def accept(self, seen: Observation) -> None:
        """Write the samples. Raises StoreError."""
        self._store.append(seen.samples)


class HourSink:
    """Turns observations into hours and puts what is due into the outbox; rows that it refuses are put again."""

    name = "hours"

    def __init__(self, book: HourAggregator, outbox: Outbox, ended: Callable[[], None]) -> None:
        self._book = book
        self._outbox = outbox
        self._ended = ended
        self._waiting: dict[tuple[str, int, int, str, str, int], AllocationHour] = {}

    def accept(self, seen: Observation) -> None:
        """Take in one observation. Raises StoreError where the outbox fails: nothing is lost by that."""
        self._book.observe(tick_of(seen), seen.jobs)
        self._put(self._book.due(seen.t_utc_us))

    def flush(self, now_us: int) -> None:
        """Put every changed row, at an orderly stop. Raises StoreError."""
        self._put(self._book.flush(now_us))

    def _put(self, rows: Sequence[AllocationHour]) -> None:
        self._waiting.update((row.key, row) for row in rows)
        if not self._waiting:
            return
        self._outbox.put(list(self._waiting.values()))
        final = any(row.final for row in self._waiting.values())
        self._waiting.clear()
        if final:
            self._ended()


def tick_of(seen: Observation) -> MeterTick:
    """Return the observation as the HourBook takes it: one sample for each GPU."""
    samples = {sample.gpu_uuid: sample for sample in seen.samples}
    if len(samples) < len(seen.samples):  # of a shared GPU one holder's sample stands for all, without its processes
        holders = Counter(sample.gpu_uuid for sample in seen.samples)
        samples = {u: replace(s, procs=None) if holders[u] > 1 else s for u, s in samples.items()}
    return MeterTick(seen.t_utc_us, seen.mono_us, samples, seen.readings, seen.host, seen.xids, seen.packages)
