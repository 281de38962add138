"""Sampling: the sampling thread, its readings, and the sinks that store raw samples and hours."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from gpuwaste.agent.agent_ports import AgentPorts
from gpuwaste.agent.bounded_calls import LIMIT_S
from gpuwaste.agent.collectors import CollectorSettings
from gpuwaste.agent.hour_aggregator import HourAggregator, replay_from_us
from gpuwaste.agent.meter import MeterTick
from gpuwaste.agent.node_map import NodeMap
from gpuwaste.agent.node_store import NodeStore
from gpuwaste.agent.observation import Observation, SinkPart
from gpuwaste.agent.outbox import HourShipping, Outbox
from gpuwaste.agent.sampler import Sampler
from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.ledger.hour import AllocationHour

_OUTBOX_FAILED: Final = log_event.error(
    "outbox-failed: {about} failed: {error}",
    "The outbox cannot be read at the start or written at the end: check the disk of `[agent] state_dir`.",
)
_DRIVER_HANGS: Final = log_event.error(
    "driver-hangs: the GPU driver does not answer, agent stopped without its last rows",
    "A GPU or its driver hangs: see `nvidia-smi` and `dmesg`. The last minutes are unknown.",
)
_JOIN_S: Final = 15.0  # for the current tick; a driver that hangs longer is not waited for


class RawSink(SinkPart):
    """Stores every sample in the node store."""

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
    """Turns observations into hours and puts due rows into the outbox; rows that fail are put again.

    Rows are sent as soon as they are due: else one could wait in the outbox for as long again. Those of the first put
    wait for the shipper's start, which is at a random moment, as nodes boot together.
    """

    name = "hours"

    def __init__(
        self, book: HourAggregator, outbox: Outbox, store: NodeStore, ports: AgentPorts, ship: Callable[[], None]
    ) -> None:
        self._book = book
        self._outbox = outbox
        self._store = store
        self._clock = ports.clock
        self._events = ports.events
        self._ship = ship
        self._put_before = False
        self._waiting: dict[tuple[str, int, int, str, str, int], AllocationHour] = {}

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an agent."""
        agent, ports = parts.get(Config).agent, parts.get(AgentPorts)
        book = HourAggregator(ports.site.cluster, ports.site.node, agent.interval_s, agent.ship_every_s)

        def ship() -> None:
            parts.get(HourShipping).shipper.wake()

        return cls(book, parts.get(Outbox), parts.get(NodeStore), ports, ship)

    def before_start(self) -> None:
        """Continue from the rows and samples that an earlier agent left; a failure loses only those."""
        with self._logged("restore from the outbox"):
            rows = self._outbox.open_rows()
            since_us = replay_from_us(rows, self._clock.utc_us())
            self._book.restore(rows, self._store.samples_since(since_us))

    def accept(self, seen: Observation) -> None:
        """Process one observation. Raises StoreError where the outbox fails; nothing is lost then."""
        self._book.observe(tick_of(seen))
        self._put(self._book.due(seen.t_utc_us))

    def flush(self) -> None:
        """Put every changed row, at an orderly stop."""
        with self._logged("last write to the outbox"):
            self._put(self._book.flush(self._clock.utc_us()))

    @contextlib.contextmanager
    def _logged(self, about: str) -> Iterator[None]:
        """Log an error of the store and continue."""
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
        if final or self._put_before:
            self._ship()
        self._put_before = True


def tick_of(seen: Observation) -> MeterTick:
    """Return the observation with one sample for each GPU."""
    samples = {sample.gpu_uuid: sample for sample in seen.samples}
    if len(samples) < len(seen.samples):  # for a shared GPU one holder's sample is used for all, without its processes
        holders = Counter(sample.gpu_uuid for sample in seen.samples)
        samples = {u: replace(s, procs=None) if holders[u] > 1 else s for u, s in samples.items()}
    return MeterTick(seen, samples)


class Sampling(Part):
    """Passes each observation to the parts that are sinks, in their order."""

    def __init__(self, parts: Parts) -> None:
        """Use the sinks among the parts."""
        agent, ports = parts.get(Config).agent, parts.get(AgentPorts)
        self._site = ports.site
        self._notifier = ports.notifier
        self._hours = parts.get(HourSink)
        self._serves = False
        settings = CollectorSettings(
            clock=ports.clock,
            node=ports.site.node,
            mig_minors=Path(agent.mig_minors),
            dcgm_url=agent.dcgm_url,
            spool_dir=ports.site.spool_dir,
            scan_limit_s=min(LIMIT_S, agent.interval_s / 2),  # so that other vendors' GPUs have no gap
        )
        self.sampler = Sampler(
            clock=ports.clock,
            interval_s=agent.interval_s,
            collectors=ports.edges.collectors(agent.collectors, settings),
            device_map=parts.get(NodeMap).devices,
            sinks=[part for part in parts.all() if isinstance(part, SinkPart)],
            events=ports.events,
            beat=self._beat,
        )
        self._thread = threading.Thread(target=self.sampler.run, name="sampler", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def before_start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread; the hours measured so far are in the outbox when this returns."""
        self.sampler.stop()
        if self.alive:
            self._thread.join(_JOIN_S)
        if self.alive:
            _DRIVER_HANGS.log()
        else:
            self._hours.flush()

    def _beat(self) -> None:
        """Signal that the sampling thread is alive and, after the first tick, that the agent is ready."""
        if not self._serves:
            self._serves = True
            self._notifier.ready(f"node {self._site.node} of cluster {self._site.cluster}")
        self._notifier.alive()
