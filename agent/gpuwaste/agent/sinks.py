"""The sinks that keep: raw samples into the node store, hours into the outbox."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Self

from gpuwaste.agent.agent_ports import AgentPorts
from gpuwaste.agent.hour_aggregator import HourAggregator, replay_from_us
from gpuwaste.agent.meter import MeterTick
from gpuwaste.agent.node_store import NodeStore
from gpuwaste.agent.observation import Observation, SinkPart
from gpuwaste.agent.outbox import HourShipping, Outbox
from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Parts
from gpuwaste.ledger.hour import AllocationHour

_OUTBOX_FAILED: Final = log_event.error(
    "outbox-failed: {about} failed: {error}",
    "The outbox cannot be read at the start or written at the end: check the disk of `[agent] state_dir`.",
)


class RawSink(SinkPart):
    """Keeps every sample in the node store."""

    name = "raw samples"

    def __init__(self, store: NodeStore) -> None:
        self._store = store

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an agent."""
        return cls(parts.get(NodeStore))

    def accept(self, seen: Observation) -> None:
        """Write the samples. Raises StoreError."""
        self._store.append(seen.samples)


class HourSink(SinkPart):
    """Turns observations into hours and puts what is due into the outbox; rows that it refuses are put again."""

    name = "hours"

    def __init__(
        self, book: HourAggregator, outbox: Outbox, store: NodeStore, ports: AgentPorts, ended: Callable[[], None]
    ) -> None:
        self._book = book
        self._outbox = outbox
        self._store = store
        self._clock = ports.clock
        self._events = ports.events
        self._ended = ended
        self._waiting: dict[tuple[str, int, int, str, str, int], AllocationHour] = {}

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an agent."""
        agent, ports = parts.get(Config).agent, parts.get(AgentPorts)
        book = HourAggregator(ports.site.cluster, ports.site.node, agent.interval_s, agent.ship_every_s)

        def ended() -> None:
            parts.get(HourShipping).shipper.wake()

        return cls(book, parts.get(Outbox), parts.get(NodeStore), ports, ended)

    def before_start(self) -> None:
        """Go on from the rows and samples that an earlier agent left; a failure costs those alone."""
        with self._logged("restore from the outbox"):
            rows = self._outbox.open_rows()
            since_us = replay_from_us(rows, self._clock.utc_us())
            self._book.restore(rows, self._store.samples_since(since_us))

    def accept(self, seen: Observation) -> None:
        """Take in one observation. Raises StoreError where the outbox fails: nothing is lost by that."""
        self._book.observe(tick_of(seen), seen.jobs)
        self._put(self._book.due(seen.t_utc_us))

    def flush(self) -> None:
        """Put every changed row, at an orderly stop."""
        with self._logged("last write to the outbox"):
            self._put(self._book.flush(self._clock.utc_us()))

    @contextlib.contextmanager
    def _logged(self, about: str) -> Iterator[None]:
        """Log an error of the store and go on."""
        try:
            yield
        except StoreError as error:
            self._events.trouble(_OUTBOX_FAILED, about, error=error)

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
