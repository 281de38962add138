"""A drawn cluster with its truth, second by second: nodes, agents' lives and clocks, runs and when their GPUs work.

Times are seconds of the true clock, which is Slurm's. Nothing here is computed as gpuwaste does.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from gpuwaste.testing.hub_rows import HOUR

BEGIN: Final = HOUR + 1234
LENGTH: Final = 4 * 3600
END: Final = BEGIN + LENGTH
MIN_JOB_AGE_S: Final = 300  # for so long slurmctld remembers a job that has ended
Spans = list[tuple[int, int]]
Kind = Literal["gpu", "cpu", "shard", "mig"]


def within(spans: Spans, at: int) -> bool:
    """Return whether an instant is in one of the spans [a, b)."""
    return any(a <= at < b for a, b in spans)


def touches(spans: Spans, a: int, b: int) -> bool:
    """Return whether one of the spans has a second of [a, b)."""
    return any(first < b and a < last for first, last in spans)


@dataclass
class WorldRun:
    """One run; `gpus` are its UUIDs by node, `active` when each works, `end` is None while it lasts."""

    job_id: int
    printed_id: str
    submit: int
    start: int
    end: int | None
    kind: Kind = "gpu"
    gpus: dict[str, list[str]] = field(default_factory=dict)
    active: dict[str, Spans] = field(default_factory=dict)
    suspended: Spans = field(default_factory=list)
    completing_s: int = 0
    requeued: bool = False
    array_job_id: int | None = None
    array_task_id: int | None = None
    het_job_id: int | None = None
    het_offset: int | None = None

    def running(self, at: int) -> bool:
        """Return whether it has its nodes."""
        return self.start <= at and (self.end is None or at < self.end)

    @property
    def uuids(self) -> list[str]:
        """Its GPUs on all nodes."""
        return [uuid for uuids in self.gpus.values() for uuid in uuids]


@dataclass
class WorldNode:
    """A node; `offsets` are (from when, seconds that its clock is ahead), `up` when its agent runs."""

    name: str
    uuids: list[str]
    offsets: list[tuple[int, float]] = field(default_factory=lambda: [(0, 0.0)])
    up: Spans = field(default_factory=lambda: [(BEGIN - 7200, END)])
    wiped: bool = False  # a restart of its agent finds no state
    cut_off: Spans = field(default_factory=list)  # cannot reach the hub
    slow_s: int = 2  # longest time that a batch is on its way
    loses_acks: bool = False
    omits: str = ""  # a GPU that its driver does not list

    def ahead(self, at: float) -> float:
        """Return by how much its clock is ahead."""
        return [off for since, off in self.offsets if since <= at][-1]


@dataclass
class World:
    """A scene. `healthy`: nothing in it is at fault."""

    seed: int
    healthy: bool
    nodes: list[WorldNode]
    runs: list[WorldRun]
    hub_ahead: float = 0.0
    slurmctld_down: Spans = field(default_factory=list)
    sacct_down: Spans = field(default_factory=list)
    slurmdbd_lag_s: int = 0
    restarts: list[int] = field(default_factory=list)
    restores: list[tuple[int, int]] = field(default_factory=list)  # when, to the state of when

    def named(self, name: str) -> list[WorldRun]:
        """Return the runs that a printed id names."""
        number = int(name) if name.isdecimal() else -1
        return [
            run
            for run in self.runs
            if run.printed_id == name or number in {run.job_id, run.array_job_id, run.het_job_id}
        ]

    def node(self, name: str) -> WorldNode:
        """Return a node."""
        return next(node for node in self.nodes if node.name == name)


def drawn_world(seed: int) -> World:
    """Draw a scene; every fourth is healthy."""
    rng = random.Random(seed)
    healthy = seed % 4 == 0
    nodes = [_node(rng, index, healthy) for index in range(6)]
    world = World(seed, healthy, nodes, _runs(rng, nodes, healthy))
    if healthy:
        return world
    world.hub_ahead = rng.choice([0.0, 0.0, rng.uniform(-299, 299)])
    world.slurmctld_down = _spans(rng, 0.3, 1800)
    world.sacct_down = _spans(rng, 0.3, 3600)
    world.slurmdbd_lag_s = rng.choice([0, 0, 30, 240, 900])
    if rng.random() < 0.3:
        world.restarts.append(rng.randint(BEGIN + 5400, END))
    if rng.random() < 0.3:
        when = rng.randint(BEGIN + 7200, END)
        world.restores.append((when, when - rng.randint(60, 5400)))
    return world


def _spans(rng: random.Random, chance: float, longest: int) -> Spans:
    if rng.random() > chance:
        return []
    first = rng.randint(BEGIN + 3600, END)
    return [(first, first + rng.randint(30, longest))]


def _node(rng: random.Random, index: int, healthy: bool) -> WorldNode:
    name = f"n{index}"
    node = WorldNode(name, [f"GPU-{name}-{number}" for number in range(rng.choice([2, 4]))])
    if healthy:
        return node
    fault = rng.choice(["", "", "dead", "restart", "wiped", "cut", "slow", "clock", "step", "acks", "omits"])
    if fault == "dead":
        node.up = [(BEGIN - 7200, rng.randint(BEGIN, END))]
    elif fault in {"restart", "wiped"}:
        down = rng.randint(BEGIN, END)
        node.up = [(BEGIN - 7200, down), (down + rng.randint(10, 2400), END)]
        node.wiped = fault == "wiped"
    elif fault == "cut":
        node.cut_off = _spans(rng, 1.0, 5400)
    elif fault == "slow":
        node.slow_s = 59
    elif fault == "clock":
        node.offsets = [(0, rng.choice([rng.uniform(-59, 59), rng.uniform(-4000, 4000)]))]
        node.slow_s = rng.choice([2, 50])
    elif fault == "step":
        far = rng.choice([30, 59, 1800])
        node.offsets = [(0, rng.uniform(-far, far)), (rng.randint(BEGIN + 1800, END), rng.uniform(-far, far))]
    elif fault == "acks":
        node.loses_acks = True
    elif fault == "omits":
        node.omits = rng.choice(node.uuids)
    return node


def _runs(rng: random.Random, nodes: Sequence[WorldNode], healthy: bool) -> list[WorldRun]:
    """Fill each node's GPUs with runs, one after the other; some hold several nodes."""
    runs: list[WorldRun] = []
    ids = iter(range(100, 100_000))
    for first in range(0, len(nodes), 2):
        pair = nodes[first : first + 2]
        if rng.random() < 0.25:
            held = {node.name: node.uuids[:] for node in pair}
            _lives(rng, runs, ids, held, healthy)
        else:
            for node in pair:
                middle = rng.randint(1, len(node.uuids))
                for uuids in (node.uuids[:middle], node.uuids[middle:]):
                    if uuids and rng.random() < 0.9:
                        _lives(rng, runs, ids, {node.name: uuids}, healthy)
                if rng.random() < 0.15:
                    _cpus(rng, runs, ids, node)
    _tie(rng, runs)
    return runs


def _cpus(rng: random.Random, runs: list[WorldRun], ids: Iterator[int], node: WorldNode) -> None:
    start = rng.randint(BEGIN, END - 600)
    job_id = next(ids)
    end = rng.choice([None, start + rng.randint(60, 3600)])
    runs.append(WorldRun(job_id, str(job_id), start - 10, start, end, "cpu", {node.name: []}))


def _lives(
    rng: random.Random, runs: list[WorldRun], ids: Iterator[int], held: dict[str, list[str]], healthy: bool
) -> None:
    """Draw the runs that hold these GPUs, one after the other: of other jobs, of the same one, or of its id."""
    at, job_id = BEGIN - rng.randint(0, 3600), next(ids)
    while at < END - 600:
        lasts = rng.random() < 0.6
        end = None if lasts else at + rng.randint(120, 9000)
        if end is not None and end >= END:
            end = None
        kind: Kind = "gpu" if healthy or rng.random() < 0.9 else rng.choice(["shard", "mig"])
        run = WorldRun(job_id, str(job_id), at - 10, at, end, kind, {name: uuids[:] for name, uuids in held.items()})
        until = END if end is None else end
        for uuid in run.uuids:
            run.active[uuid] = [(a, min(b, until)) for a, b in _activity(rng, at, until) if a < until]
        if not healthy and rng.random() < 0.1 and until - at > 600:
            first = rng.randint(at, until - 300)
            run.suspended = [(first, min(until, first + rng.randint(60, 3000)))]
            for uuid in run.uuids:  # a stopped process does nothing
                run.active[uuid] = [(a, b) for a, b in run.active[uuid] if not touches(run.suspended, a, b)]
        run.completing_s = 0 if healthy else rng.choice([0, 0, 20, 90])
        runs.append(run)
        if end is None:
            return
        again = rng.random()
        run.requeued = again < 0.2
        job_id = job_id if again < 0.35 else next(ids)
        at = end + run.completing_s + rng.choice([61, 130, 1200])


def _activity(rng: random.Random, start: int, end: int) -> Spans:
    """Draw when a GPU works: never, once and then no more, from some instant on, in bursts, or always."""
    kind = rng.choice(["never", "never", "begins", "begins", "wakes", "bursts", "always"])
    middle = rng.randint(start, max(start, end - 1))
    if kind == "never":
        return []
    if kind == "begins":
        return [(start + 40, max(start + 41, min(middle, start + 3000)))]
    if kind == "wakes":
        return [(middle, middle + rng.choice([1, 5, 600, 9000]))]
    if kind == "always":
        return [(start, end)]
    spans, at = [], start + rng.randint(0, 900)
    while at < end:
        stop = at + rng.choice([1, 20, 300])
        spans.append((at, min(stop, end)))
        at = stop + rng.randint(60, 5000)
    return spans


def _tie(rng: random.Random, runs: list[WorldRun]) -> None:
    """Make tasks of one array, and components of one het job, of some runs that have ids of their own."""
    counts = {run.job_id: sum(other.job_id == run.job_id for other in runs) for run in runs}
    single = [run for run in runs if counts[run.job_id] == 1 and run.kind == "gpu"]
    rng.shuffle(single)
    for task, run in enumerate(single[:2]):
        run.array_job_id, run.array_task_id, run.printed_id = 90_000, task, f"90000_{task}"
    for offset, run in enumerate(single[2:4]):
        run.het_job_id, run.het_offset, run.printed_id = single[2].job_id, offset, f"{single[2].job_id}+{offset}"
