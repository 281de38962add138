"""ONNX: the graph of a model, forward only; weights are left out before it is parsed, external data is never opened."""

import mmap
from collections.abc import Iterable
from math import prod
from typing import Any, BinaryIO, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.program import DTYPE_BITS, Dtype, Kind, Program
from gpuwaste.estimate.readers.assemble import program_of
from gpuwaste.estimate.readers.graph import MAX_NODES, Graph, GraphNode, Role
from gpuwaste.estimate.readers.onnx_ops import kind_and_role, work
from gpuwaste.estimate.readers.onnx_wire import expanded_nodes, without_weights

TITLE: Final = "ONNX"
MAX_FILE_B: Final = 2 << 30
SMALLER: Final = ": keep the weights in external data"
NATIVE: Final = True
_MAX_GRAPH_B: Final = 64 << 20
_SHOWN_NODES: Final = 10**12
_DTYPES: Final[dict[int, Dtype]] = {
    1: "f32", 2: "i8", 3: "i8", 4: "i16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "i32",
    13: "i64", 14: "c64", 15: "c128", 16: "bf16", 17: "f8", 18: "f8", 19: "f8", 20: "f8", 21: "i4", 22: "i4", 23: "f4",
}  # fmt: skip
"""TensorProto.DataType."""
_UNKNOWN_LENGTH: Final = frozenset({"Loop", "Scan", "If"})


def recognizes(head: bytes) -> bool:
    """Return whether a file begins like a ModelProto: ir_version first, as a small number."""
    return len(head) > 2 and head[0] == 0x08 and head[1] < 0x80  # noqa: PLR2004 - field 1, one byte


def read(stream: BinaryIO, name: str) -> Program:
    """Read a model. Raises ParseError."""
    try:
        import onnx  # noqa: PLC0415 - optional
    except ImportError as error:
        raise ParseError(
            "ONNX needs the Python package onnx, which this installation lacks (the RPMs never have it): write the "
            "program with a probe (gpuwaste estimate probe torch), or use gpuwaste in a virtual environment of your "
            "own, installed by pip with its extra [estimate]"
        ) from error
    light = without_weights(memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)))
    if len(light) > _MAX_GRAPH_B:
        raise ParseError(f"{len(light) >> 20} MiB of graph without weights: more than {_MAX_GRAPH_B >> 20} MiB")
    try:
        model = onnx.ModelProto.FromString(light)
        _require_bounded(model)
        model = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False)
    except (ParseError, RecursionError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - protobuf and onnx raise errors of many kinds for bad files
        first = str(error).strip().splitlines()
        raise ParseError(f"not ONNX, or cut: {first[0][:120] if first else type(error).__name__}") from None
    if not model.graph.node:
        raise ParseError("no operations in the graph: not ONNX, or cut")
    return _Model(model.graph).program(model.graph.name or name)


def _require_bounded(model: Any) -> None:
    """Reject a model that functions expand too far, such as a few that each call the previous one twice."""
    nodes = expanded_nodes(model)
    if nodes > MAX_NODES:
        shown = f"{nodes}" if nodes < _SHOWN_NODES else f"more than {_SHOWN_NODES}"
        raise ParseError(f"{shown} operations once its functions are expanded: expected at most {MAX_NODES}")


class _Model:
    """Turns the nodes of a graph into the graph of arrays."""

    def __init__(self, graph: Any) -> None:
        self.source = graph
        self.graph = Graph()
        self.arrays: dict[str, int] = {}
        self.dtypes: dict[int, Dtype] = {}
        self.shapes = {each.name: each.type.tensor_type for each in (*graph.value_info, *graph.input, *graph.output)}
        self.unknown: dict[str, int] = {}
        self.read = _read_names(graph)

    def program(self, name: str) -> Program:
        """Return the model as a program."""
        if len(self.source.node) > MAX_NODES:
            raise ParseError(f"more than {MAX_NODES} operations")
        for tensor in self.source.initializer:
            self._parameter(tensor.name, tensor.data_type, tuple(tensor.dims))
        for given in self.source.input:
            if given.name not in self.arrays:
                self._parameter(given.name, given.type.tensor_type.elem_type, self._dims(given.name))
        for node in self.source.node:
            self._node(node)
        for wanted in self.source.output:
            if wanted.name in self.arrays:
                self.graph.outputs.append((self.arrays[wanted.name], None))
        notes = [f"unknown operation {kind} ({count} times)" for kind, count in sorted(self.unknown.items())[:20]]
        return program_of(self.graph, name, "onnx", training=False, notes=[*notes, "ONNX has the forward pass only"])

    def _parameter(self, name: str, dtype: int, dims: tuple[int, ...]) -> None:
        array = self._array(name, _DTYPES.get(dtype, "other"), dims)
        self.graph.parameters.append(array)

    def _array(self, name: str, dtype: Dtype, dims: tuple[int, ...]) -> int:
        if any(not 0 <= size < 1 << 48 for size in dims) or prod(dims) >= 1 << 50:
            raise ParseError(f"{name[:60]}: shape {list(dims)[:8]} is not possible for an array")
        array = self.graph.array((prod(dims) * DTYPE_BITS[dtype] + 7) // 8, dims)
        self.dtypes[array] = dtype
        if name:
            self.arrays[name] = array
        return array

    def _dims(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape. Raises ParseError if it is not fixed."""
        kind = self.shapes.get(name)
        if kind is None or not kind.HasField("shape"):
            raise ParseError(f"{name[:60]}: shape unknown: export the model with static shapes")
        dims = []
        for each in kind.shape.dim:
            if not each.HasField("dim_value"):
                raise ParseError(
                    f"{name[:60]}: dynamic shape [{each.dim_param[:20] or '?'}]: export the model without dynamic axes"
                )
            dims.append(each.dim_value)
        return tuple(dims)

    def _node(self, node: Any) -> None:
        kind: Kind
        role: Role
        kind, role = kind_and_role(node.op_type)
        if kind == "other":
            self.unknown[node.op_type[:60]] = self.unknown.get(node.op_type[:60], 0) + 1
        inputs = [self._given(node, each) for each in node.input if each]
        outputs = [self._made(each, inputs) for each in self._wanted(node)]
        if not outputs:
            return
        shapes = self.graph.shapes
        flops, kind = work(node, kind, [shapes[each] for each in inputs], [shapes[each] for each in outputs])
        dtype = self.dtypes[inputs[0]] if inputs and kind != "gather" else self.dtypes[outputs[0]]
        if node.op_type in _UNKNOWN_LENGTH:
            self.graph.unknown_trips += 1
        added = GraphNode(
            kind, dtype, (node.name or node.op_type)[:256], flops, role=role, inputs=inputs, outputs=outputs
        )
        if kind == "gather" or node.op_type == "Slice":
            added.reads = {0: self.graph.sizes[outputs[0]]}
        self.graph.add(added)

    def _wanted(self, node: Any) -> list[str]:
        """Return the outputs of a node that take memory.

        Outputs after the first that are never read (Dropout's mask, MaxPool's indices, saved means) are not computed
        at inference, and exporters often leave their shapes out.
        """
        first, *others = [each for each in node.output if each] or [""]
        return [each for each in (first, *(other for other in others if other in self.read)) if each]

    def _given(self, node: Any, name: str) -> int:
        found = self.arrays.get(name)
        if found is None:
            raise ParseError(f"{(node.name or node.op_type)[:60]}: input {name[:60]!r} is not defined above it")
        return found

    def _made(self, name: str, inputs: Iterable[int]) -> int:
        kind = self.shapes.get(name)
        dtype: Dtype = next((self.dtypes[each] for each in inputs), "other")
        if kind is not None and kind.elem_type:
            dtype = _DTYPES.get(kind.elem_type, "other")
        return self._array(name, dtype, self._dims(name))


def _read_names(graph: Any) -> set[str]:
    """Return the tensors that a node or the graph's outputs read; bodies of branches and loops read outer ones too."""
    found, waiting = {each.name for each in graph.output}, [graph]
    while waiting:
        inner = waiting.pop()
        for node in inner.node:
            found.update(node.input)
            for attribute in node.attribute:
                waiting += [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs
        if inner is not graph:
            found.update(each.name for each in inner.output)
    return found
