"""The agents of a drawn cluster: the real aggregator sees the truth at its ticks; batches reach the hub, or do not."""

import random
from dataclasses import dataclass
from typing import Final

from tests.unit.ledger.idleness.idle_world import BEGIN, END, World, WorldNode, WorldRun, touches, within

from gpuwaste.agent.hour_aggregator import HourAggregator
from gpuwaste.agent.meter import MeterTick
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.readings import GpuAllocation, JobMap
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.run_key import RunKey

TICK_S: Final = 60
SHIP_S: Final = 900
_WARM_S: Final = 3600  # an agent looks for so long before the scene begins
RowKey = tuple[str, int, int, str, str, int]


@dataclass(frozen=True)
class Delivery:
    """A batch that reaches the hub at a true second; `sent_us` is the agent's clock when it was sent."""

    at: int
    node: str
    sent_us: int
    rows: tuple[AllocationHour, ...]


def deliveries(world: World, hub_down: list[tuple[int, int]]) -> list[Delivery]:
    """Return what the hub gets, in the order in which it gets it."""
    found = [one for node in world.nodes for one in AgentLife(world, node, hub_down).delivered()]
    return sorted(found, key=lambda one: (one.at, one.node))


class AgentLife:
    """One agent from before the scene to its end."""

    def __init__(self, world: World, node: WorldNode, hub_down: list[tuple[int, int]]) -> None:
        self._world = world
        self._node = node
        self._rng = random.Random(f"{world.seed} {node.name}")
        self._unreached = [*node.cut_off, *hub_down]
        self._book: HourAggregator | None = None
        self._sent: dict[RowKey, AllocationHour] = {}  # newest version of each row that was handed out
        self._outbox: dict[RowKey, AllocationHour] = {}
        self._last = 0
        self._runs = [run for run in world.runs if node.name in run.gpus and run.kind != "cpu"]

    def delivered(self) -> list[Delivery]:
        """Return the batches that reach the hub."""
        found, retry_at = [], END
        for at in range(BEGIN - _WARM_S + self._rng.randrange(TICK_S), END, TICK_S):
            if not within(self._node.up, at):
                self._book = None
                continue
            if not any(first <= self._last and at < last for first, last in self._node.up):
                self._book = None  # restarted between two ticks
            due = self._tick(at)
            if not self._outbox or (not due and at < retry_at):
                continue
            if within(self._unreached, at):
                retry_at = at + self._rng.randint(2, SHIP_S)
                continue
            rows = tuple(self._outbox.values())
            found.append(Delivery(at + self._rng.randint(0, self._node.slow_s), self._node.name, self._us(at), rows))
            if not (self._node.loses_acks and self._rng.random() < 0.5):
                self._outbox.clear()
            else:
                retry_at = at + self._rng.randint(2, SHIP_S)
        return found

    def _us(self, at: float) -> int:
        return round((at + self._node.ahead(at)) * 1e6)

    def _tick(self, at: int) -> bool:
        """Sample once; return whether rows are due."""
        if self._book is None:
            self._book = HourAggregator("gw", self._node.name, TICK_S, SHIP_S)
            if self._node.wiped:
                self._sent, self._outbox = {}, {}
            self._book.restore([row for row in self._sent.values() if not row.final], ())
            before = at
        else:
            before = self._last
        held = [run for run in self._runs if run.start <= at and not self._released(run, at)]
        ended = [run for run in self._runs if self._released(run, at) and not self._released(run, before)]
        samples = {uuid: self._sample(at, before, uuid) for uuid in self._node.uuids if uuid != self._node.omits}
        samples |= {f"MIG-{uuid}": self._sample(at, before, f"MIG-{uuid}") for uuid in self._node.uuids}
        jobs = JobMap(
            tuple(self._holding(run, uuid, at) for run in held for uuid in run.gpus[self._node.name]),
            tuple((run.job_id, self._us((run.end or 0) + run.completing_s)) for run in ended),
        )
        self._book.observe(MeterTick(Observation(self._us(at), at * 1_000_000, jobs=jobs), samples))
        rows = self._book.due(self._us(at))
        for row in rows:
            self._sent[row.key] = self._outbox[row.key] = row
        self._last = at
        return bool(rows)

    @staticmethod
    def _released(run: WorldRun, at: int) -> bool:
        return run.end is not None and run.end + run.completing_s <= at

    def _sample(self, at: int, before: int, uuid: str) -> Sample:
        own = uuid.removeprefix("MIG-")
        busy = any(touches(run.active.get(own, []), before, at) for run in self._runs)
        return Sample(self._us(at), at * 1_000_000, uuid, "", "nvml", util_pct=50.0 if busy else 0.0)

    def _holding(self, run: WorldRun, uuid: str, at: int) -> GpuAllocation:
        name = f"MIG-{uuid}" if run.kind == "mig" else uuid
        if uuid == self._node.omits:
            name = f"missing:{self._node.name}:{self._node.uuids.index(uuid)}"
        return GpuAllocation(
            run.job_id,
            name,
            self._us(run.start),
            RunKey("gw", run.job_id, run.start),
            0.5 if run.kind == "shard" else 1.0,
            MapSource.PROLOG,
            Confidence.CONFIRMED,
            suspended=within(run.suspended, at),
        )
