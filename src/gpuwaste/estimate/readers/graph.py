"""The common form of all readers: a program as a graph of arrays, before it is known which of them are stored.

A reader adds nodes in an order in which each is after its inputs. graph_steps.py makes operations and buffers from
them.
"""

from typing import Final, Literal

from msgspec import Struct

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.program import MAX_OPS, MAX_TRIPS, Dtype, Kind

Role = Literal["source", "alias", "view", "light", "reduce", "update", "heavy"]
"""How a node uses memory.

source: a parameter or a constant. alias: another name of its input (reshape). view: a transposition, which a matrix
product reads in place. light: computed where it is needed, so its result need not be stored. reduce: reads light
inputs without storing them, stores its result. update: writes into its first input. heavy: stores its result and needs
stored inputs.
"""
MAX_NODES: Final = MAX_OPS
MAX_LINKS: Final = 1_500_000
"""Inputs and outputs of all nodes."""


class Operation(Struct):
    """The work and how often it is done: of one node of a program, or of a kernel for several nodes."""

    kind: Kind
    dtype: Dtype
    name: str = ""
    flops: float = 0.0
    trips: float = 1.0
    into: int | None = None
    """Input (of a kernel: stored array) whose memory the first output reuses, if nothing needs it later."""
    workspace_b: int = 0
    """Memory that it needs only while it runs."""
    early: bool = False
    """Its output is filled with zeros first: compilers do that together with the first step of that shape."""
    loop: int = 0
    """The outermost loop it runs in; 0 is none. Operations of a loop stay together."""


class GraphNode(Operation, kw_only=True):
    """One operation on arrays; inputs and outputs are indexes of `Graph.sizes`."""

    role: Role
    inputs: list[int]
    outputs: list[int]
    reads: dict[int, int] | None = None
    """Input (by place) → bytes read of it at most, where only a part is read (slices, gathers)."""
    writes: int | None = None
    """Bytes written, if not all of the output is written (updates)."""
    costly: bool = False
    """A light node whose result is stored if more than one operation uses it."""
    partial_b: int = 0
    """Bytes of partial results that it stores and that are added up into the output; 0: it stores the output."""


class Graph:
    """Nodes in order, and the arrays between them."""

    def __init__(self) -> None:
        self.nodes: list[GraphNode] = []
        self.sizes: list[int] = []
        self.shapes: list[tuple[int, ...]] = []
        self.parameters: list[int] = []
        """Arrays passed to the program."""
        self.outputs: list[tuple[int, int | None]] = []
        """Arrays returned, and the parameter (by place) whose memory each may reuse."""
        self.same: list[tuple[int, int]] = []
        """Pairs of arrays in the same memory: a loop's initial value, and the one passed from trip to trip."""
        self.zeros: set[int] = set()
        """Arrays that are zero everywhere."""
        self.fused = False
        """A compiler has already decided what is stored: every node stores its result, and the order is final."""
        self.loops = 0
        self.unknown_trips = 0
        self.notes: list[str] = []
        self._links = 0

    def array(self, size_b: int, shape: tuple[int, ...]) -> int:
        """Add an array and return its index."""
        self.sizes.append(size_b)
        self.shapes.append(shape)
        return len(self.sizes) - 1

    def add(self, node: GraphNode) -> None:
        """Add a node. Raises ParseError where the program has too many."""
        if len(self.nodes) >= MAX_NODES:
            raise ParseError(f"more than {MAX_NODES} operations once its calls are expanded")
        self._links += len(node.inputs) + len(node.outputs)
        if self._links > MAX_LINKS:
            raise ParseError(f"more than {MAX_LINKS} operands once its calls are expanded")
        if node.trips > MAX_TRIPS:
            raise ParseError(f"{node.name[:60]}: runs more than {MAX_TRIPS:.0e} times")
        self.nodes.append(node)
