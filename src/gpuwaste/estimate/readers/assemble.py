"""A reader's graph as a Program: steps in the order that needs less memory, buffers, fingerprint."""

from collections.abc import Sequence
from heapq import heappop, heappush

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.program import CompiledMemory, Op, Program, Source, fingerprint, peak_b
from gpuwaste.estimate.readers.buffer_lifetimes import buffers_of
from gpuwaste.estimate.readers.graph import Graph
from gpuwaste.estimate.readers.graph_steps import MAX_INPUTS, KernelStep, Steps

_MAX_SHAPES = 8


def program_of(
    graph: Graph,
    name: str,
    source: Source,
    *,
    training: bool | None = None,
    compiled: CompiledMemory | None = None,
    notes: Sequence[str] = (),
) -> Program:
    """Return the neutral form of a graph. Raises ParseError."""
    building = Steps(graph)
    steps = building.build()
    names = building.names
    if not graph.fused:
        steps = _late_fills(steps)
    buffers = buffers_of(graph, names, steps)
    if not graph.fused:
        kept = {names[each] for each in graph.parameters} | {names[leaf] for leaf, _ in graph.outputs}
        other = _late_fills(freeing_order(steps, graph.sizes, kept))
        other_buffers = buffers_of(graph, names, other)
        if peak_b(other_buffers) < peak_b(buffers):
            steps, buffers = other, other_buffers
    ops = [_op(graph, step) for step in steps]
    if not ops:
        raise ParseError("no operations in the program")
    parameters = sum(buffer.size_b for buffer in buffers if buffer.kind == "parameter")
    outputs = sum(buffer.size_b for buffer in buffers if buffer.kind == "output")
    return Program(
        name=name[:256],
        source=source,
        ops=ops,
        buffers=buffers,
        parameters_b=parameters,
        outputs_b=outputs,
        fingerprint=fingerprint(ops, buffers),
        training=training,
        optimized=graph.fused,
        compiled=compiled,
        unknown_trips=graph.unknown_trips,
        notes=[*graph.notes, *notes][:100],
    )


def _op(graph: Graph, step: KernelStep) -> Op:
    arrays = [*step.writes[:1], *step.reads][:_MAX_SHAPES]
    return Op(
        kind=step.kind,
        name=step.name[:256],
        dtype=step.dtype,
        flops=step.flops,
        bytes_read=float(sum(step.reads.values())),
        bytes_written=step.written_b,
        trips=step.trips,
        shapes=tuple(graph.shapes[each] for each in arrays),
    )


def _late_fills(steps: list[KernelStep]) -> list[KernelStep]:
    """Return the steps with each one that reads nothing right before its first user, as a compiler orders them."""
    begins: dict[int, int] = {}
    first: dict[int, int] = {}
    for place, step in enumerate(steps):
        start = begins.setdefault(step.loop, place) if step.loop else place
        for array in step.reads:
            first.setdefault(array, start)
    last = len(steps)
    keyed = [
        (min((first.get(array, last) for array in step.writes), default=place), 0, place)
        if not step.reads and not step.loop
        else (place, 1, place)
        for place, step in enumerate(steps)
    ]
    return [steps[place] for _, _, place in sorted(keyed)]


def freeing_order(steps: list[KernelStep], sizes: list[int], kept: set[int]) -> list[KernelStep]:
    """Return the steps in an order that frees memory early; arrays in `kept` are never freed.

    Steps of one loop stay together, in their order.
    """
    return _Scheduler(steps, sizes, kept).run()


class _Scheduler:
    """Runs, of all units whose inputs are available, the one after which the least memory is in use."""

    def __init__(self, steps: list[KernelStep], sizes: list[int], kept: set[int]) -> None:
        self.sizes, self.kept = sizes, kept
        self.units = _units(steps)
        places = range(len(self.units))
        maker = {array: place for place in places for step in self.units[place] for array in step.writes}
        self.reads = [{array for step in unit for array in step.reads} for unit in self.units]
        self.users: dict[int, set[int]] = {}
        for place in places:
            for array in self.reads[place]:
                self.users.setdefault(array, set()).add(place)
        self.made = [
            sum(sizes[a] for step in self.units[p] for a in step.writes if self.users.get(a, set()) - {p})
            for p in places
        ]
        waits = [{maker[array] for array in self.reads[place] if array in maker} - {place} for place in places]
        self.left = [len(before) for before in waits]
        self.after: list[list[int]] = [[] for _ in places]
        for place in places:
            for each in waits[place]:
                self.after[each].append(place)
        self.done = [False] * len(self.units)
        self.heap: list[tuple[int, int]] = []

    def run(self) -> list[KernelStep]:
        """Return the steps in order."""
        for place in range(len(self.units)):
            if not self.left[place]:
                self._ready(place)
        ordered: list[KernelStep] = []
        while self.heap:
            _, place = heappop(self.heap)
            if not self.done[place]:
                self.done[place] = True
                ordered += self.units[place]
                self._finish(place)
        return ordered

    def _ready(self, place: int) -> None:
        freed = sum(self.sizes[a] for a in self.reads[place] if a not in self.kept and self.users[a] == {place})
        heappush(self.heap, (self.made[place] - freed, place))

    def _finish(self, place: int) -> None:
        for array in self.reads[place]:
            users = self.users[array]
            users.discard(place)
            if len(users) == 1 and array not in self.kept:  # running its last user now frees it
                last = next(iter(users))
                if not self.left[last] and not self.done[last] and len(self.reads[last]) <= MAX_INPUTS:
                    self._ready(last)
        for each in self.after[place]:
            self.left[each] -= 1
            if not self.left[each]:
                self._ready(each)


def _units(steps: list[KernelStep]) -> list[list[KernelStep]]:
    units: list[list[KernelStep]] = []
    loop = 0
    for step in steps:
        if step.loop and step.loop == loop:
            units[-1].append(step)
        else:
            units.append([step])
        loop = step.loop
    return units
