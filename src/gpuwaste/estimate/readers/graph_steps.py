"""A graph as steps: operations that a compiler would fuse, with what each step reads and stores.

Results that are cheap to compute again (elementwise, moves) are not stored if only such operations and reductions use
them: each user computes them from the stored arrays that they depend on, as XLA's and torch's fusion do.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from gpuwaste.estimate.program import Kind
from gpuwaste.estimate.readers.graph import Graph, GraphNode, Operation

MAX_SOURCES: Final = 6
"""Stored arrays that a result used several times may depend on; with more it is stored itself."""
MAX_ROW: Final = 16_384
"""Most columns of a normalization that is one kernel."""
MAX_INPUTS: Final = 64
"""Most stored arrays that one kernel of several operations reads."""
_RANK: Final[dict[Kind, int]] = {"copy": 0, "act": 1, "elem": 1, "gather": 2}


class KernelStep(Operation, kw_only=True):
    """Operations computed together: one kernel, or none where no data are moved."""

    reads: dict[int, int]
    """Stored array → bytes read of it."""
    writes: list[int]
    """Arrays stored."""
    written_b: float
    reuses: bool = False
    """The result may reuse the memory of any input of its size that ends here: elementwise work."""


class _Light(Struct):
    """An array that is not stored: how it is computed from stored ones."""

    sources: dict[int, int]
    rank: int
    whole: bool
    """It is an unchanged or transposed input."""


def stored_names(graph: Graph) -> list[int]:
    """Return for each array the one of which it is an alias."""
    names = list(range(len(graph.sizes)))
    for node in graph.nodes:
        if node.role == "alias" and node.inputs:
            for place, output in enumerate(node.outputs):
                given = node.inputs[min(place, len(node.inputs) - 1)]
                if graph.sizes[given] == graph.sizes[output] or len(node.outputs) == 1:
                    names[output] = names[given]
    return names


class Steps:
    """Builds the steps of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names = stored_names(graph)
        self._light: dict[int, _Light] = {}
        self._stored: dict[int, _Light] = {}
        self._must: set[int] = set()
        self._returned = {self.names[leaf] for leaf, _ in graph.outputs}
        self._uses: dict[int, int] = {}
        self._reduced: dict[int, set[int]] = {}
        self._partial: list[tuple[int, int, int]] = []
        """Steps that store partial results: place, output, bytes."""
        self.steps: list[KernelStep] = []

    def build(self) -> list[KernelStep]:
        """Return the steps in the graph's order."""
        self._look_ahead()
        for node in self.graph.nodes:
            if node.role == "source":
                for output in node.outputs:
                    self._light[output] = _Light({}, 0, whole=True)
            elif node.role == "alias":
                self._alias(node)
            elif node.role in {"light", "view"} and not self.graph.fused:
                self._compute(node)
            else:
                self._store(node, self._inputs(node, [self._behind(each) for each in node.inputs]))
        self._keep_partial()
        return self.steps

    def _keep_partial(self) -> None:
        """Set how long partial results are kept: the only step that uses them adds them up, else a kernel for that."""
        partial = {output for _, output, _ in self._partial}
        users = Counter(array for step in self.steps for array in step.reads if array in partial)
        for place, output, size_b in self._partial:
            if output in self._must or users[output] > 1:
                self.steps[place].workspace_b += size_b
            else:
                self.graph.sizes[output] = size_b

    def _look_ahead(self) -> None:
        """Find the arrays that must be stored: results, inputs of heavy operations, arrays that cross a loop."""
        names, uses, must = self.names, self._uses, self._must
        home: dict[int, int] = {}
        for node in self.graph.nodes:
            loop, role = node.loop, node.role
            for output in node.outputs:
                home.setdefault(names[output], loop)
            if role == "alias":
                continue
            for each in node.inputs:
                given = names[each]
                uses[given] = uses.get(given, 0) + 1
                if role == "heavy" or (loop and home.get(given, 0) != loop):
                    must.add(given)
            if node.kind == "gather" and node.inputs:
                must.add(names[node.inputs[0]])
            if role == "update" and node.into is not None and node.into < len(node.inputs):
                must.add(names[node.inputs[node.into]])
        self._must |= self._returned
        for pair in self.graph.same:
            self._must.update(names[each] for each in pair)

    def _alias(self, node: GraphNode) -> None:
        for output in node.outputs:
            if self.names[output] == output:  # not an alias: something small or unknown
                self._light[output] = _Light({}, 0, whole=False)

    def _behind(self, array: int) -> _Light:
        name = self.names[array]
        found = self._light.get(name) or self._stored.get(name)
        if found is None:
            found = self._stored[name] = _Light({name: self.graph.sizes[name]}, 0, whole=True)
        return found

    def _inputs(self, node: GraphNode, given: Sequence[_Light]) -> dict[int, int]:
        """Return the stored arrays that a node reads through its inputs, and how much of each. Do not change it."""
        if len(given) == 1 and not node.reads:
            return given[0].sources
        reads: dict[int, int] = {}
        for place, light in enumerate(given):
            most = node.reads.get(place) if node.reads else None
            for source, size in light.sources.items():
                read = size if most is None or size < most else most
                if read > reads.get(source, -1):
                    reads[source] = read
        return reads

    def _compute(self, node: GraphNode) -> None:
        """Take a light node: keep how it is computed, or store it if necessary."""
        output = node.outputs[0] if node.outputs else None
        if output is None:
            return
        behind = [self._behind(each) for each in node.inputs]
        sources = self._inputs(node, behind)
        rank = _RANK.get(node.kind, 0)
        for each in behind:
            if each.rank > rank and not each.whole:
                rank = each.rank
        light = _Light(sources, rank, whole=node.role == "view" and len(behind) == 1 and behind[0].whole)
        shared = self._uses.get(output, 0) > 1
        many = len(sources) > (MAX_SOURCES if shared else MAX_INPUTS) or (node.costly and shared)
        # A transposed input is read in place by a matrix product; it is stored if it is returned or used by a loop.
        if (output in self._must and not (light.whole and len(sources) <= 1)) or many:
            self._store(node, sources, rank)
        else:
            self._light[output] = light
            if output in self._must and output in self._returned:
                self._store(node, sources, rank)

    def _store(self, node: GraphNode, sources: dict[int, int], rank: int | None = None) -> None:
        kind, workspace_b = node.kind, node.workspace_b
        if rank is not None and _RANK.get(kind, 9) <= rank:
            kind = next((each for each, of in _RANK.items() if of == rank and each != "act"), kind)
        for output in node.outputs:
            self._light.pop(output, None)
            if node.role == "reduce" and self._along_rows(node, output):
                self._reduced[output] = set(sources)
        # Normalization reads its input again after reducing it: one kernel, whose result has its own memory.
        again = (
            bool(self._reduced)
            and any(not self._reduced[each].isdisjoint(sources) for each in sources if each in self._reduced)
            and all(0 < (self.graph.shapes[each] or (1,))[-1] <= MAX_ROW for each in node.outputs)
        )
        sizes = self.graph.sizes
        written = node.writes if node.writes is not None else sum(sizes[each] for each in node.outputs)
        into = self.names[node.inputs[node.into]] if node.into is not None and node.into < len(node.inputs) else None
        if node.partial_b and node.outputs:
            self._partial.append((len(self.steps), node.outputs[0], node.partial_b))
        self.steps.append(
            KernelStep(
                kind=kind,
                dtype=node.dtype,
                name=node.name,
                reads=sources,
                writes=list(node.outputs),
                written_b=float(written),
                flops=node.flops,
                trips=node.trips,
                loop=node.loop,
                into=into if into in sources else None,
                workspace_b=workspace_b,
                early=node.early,
                reuses=node.role == "light" and not again,
            )
        )

    def _along_rows(self, node: GraphNode, output: int) -> bool:
        given = self.graph.shapes[node.inputs[0]] if node.inputs else ()
        return bool(given) and self.graph.shapes[output] in {given[:-1], (*given[:-1], 1)}
