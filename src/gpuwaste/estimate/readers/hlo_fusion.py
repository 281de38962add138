"""A fusion of HLO as one node: the work of what it fuses, and what it reads and writes of memory."""

from typing import Final

from msgspec.structs import replace

from gpuwaste.estimate.program import Dtype, Kind
from gpuwaste.estimate.readers.graph import GraphNode
from gpuwaste.estimate.readers.hlo_cost import PARTS, role_and_kind, work
from gpuwaste.estimate.readers.hlo_shape import ArrayShape, leaves
from gpuwaste.estimate.readers.hlo_text import Computation, Instruction, Module

_RANK: Final = {kind: rank for rank, kind in enumerate(
    ("copy", "elem", "gather", "reduce", "window", "random", "scatter", "sort", "bmm", "mm",
     "conv1", "gconv", "dwconv", "conv", "other")
)}  # fmt: skip
"""The kind of a fusion is the heaviest of what it fuses."""
_THROUGH: Final = frozenset({"bitcast", "reshape", "copy", "convert"})


class Fusions:
    """Fusions by the computation that they call."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[str, tuple[GraphNode, Dtype | None]] = {}

    def node(self, of: Computation, operands: list[ArrayShape]) -> GraphNode:
        """Return the node of a fusion, without its arrays."""
        if of.name not in self._known:
            self._known[of.name] = _fused(of)
        fused, dtype = self._known[of.name]
        first = operands[0].dtype if operands else "other"
        return replace(fused, dtype=dtype or first, inputs=[], outputs=[], reads=fused.reads or None)


def _fused(of: Computation) -> tuple[GraphNode, Dtype | None]:
    """Return what a fused computation does, whatever is passed to it, and its type, None: that of what is passed."""
    types = {each.name: leaves(each.type) for each in of.instructions}
    kind: Kind = "copy"
    flops = 0.0
    dtype: Dtype | None = None
    for each in of.instructions:
        if each.opcode in {"parameter", "constant", "tuple", "get-tuple-element", "fusion", "call"}:
            continue
        operands = [leaf for name in each.operands for leaf in types.get(name, [])]
        _, coarse = role_and_kind(each.opcode, each.attributes)
        found, finer = work(each.opcode, coarse, each.attributes, operands, types[each.name])
        flops += found
        if _RANK.get(finer, 0) > _RANK.get(kind, 0):
            kind = finer
            heavy = coarse in {"mm", "conv"}
            of_what = operands if heavy and operands else types[each.name]
            dtype = of_what[0].dtype if of_what else dtype
    fused = GraphNode(kind, dtype or "other", flops=flops, role="light", inputs=[], outputs=[], reads=_reads(of, types))
    _in_place(of, types, fused)
    if kind in {"mm", "bmm", "conv", "conv1", "dwconv", "gconv", "sort"}:
        fused.role = "heavy"
    return fused, dtype


def _reads(of: Computation, types: dict[str, list[ArrayShape]]) -> dict[int, int]:
    """Return for each parameter of which only parts are read how much that is."""
    numbers = {e.name: int(e.operands[0]) for e in of.instructions
               if e.opcode == "parameter" and e.operands and e.operands[0].isdecimal()}  # fmt: skip
    parts: dict[int, int] = {}
    whole: set[int] = set()
    for each in of.instructions:
        for place, name in enumerate(each.operands if each.opcode not in {"parameter", "constant"} else ()):
            number = numbers.get(name)
            if number is None:
                continue
            if place == 0 and each.opcode in PARTS:
                parts[number] = parts.get(number, 0) + sum(leaf.size_b for leaf in types[each.name])
            elif not (place == 0 and each.opcode == "dynamic-update-slice"):
                whole.add(number)
    return {number: size for number, size in parts.items() if number not in whole}


def _in_place(of: Computation, types: dict[str, list[ArrayShape]], fused: GraphNode) -> None:
    """Where the result is an update of a parameter, it is written into that parameter's memory."""
    by_name = {each.name: each for each in of.instructions}
    root: Instruction | None = of.instructions[of.root]
    while root is not None and root.opcode in _THROUGH and root.operands:
        root = by_name.get(root.operands[0])
    if root is None or root.opcode not in {"dynamic-update-slice", "scatter"} or len(root.operands) < 2:  # noqa: PLR2004 - operand, update
        return
    target = by_name.get(root.operands[0])
    while target is not None and target.opcode in _THROUGH and target.operands:
        target = by_name.get(target.operands[0])
    if target is not None and target.opcode == "parameter" and target.operands[0].isdecimal():
        fused.into, fused.role = int(target.operands[0]), "update"
        update = types.get(root.operands[2 if root.opcode == "scatter" and len(root.operands) > 2 else 1], [])  # noqa: PLR2004 - same
        fused.writes = sum(leaf.size_b for leaf in update)
        fused.reads = {**(fused.reads or {}), fused.into: fused.writes if root.opcode == "scatter" else 0}
