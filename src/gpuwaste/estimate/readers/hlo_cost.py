"""The work of an HLO instruction or a fusion: kind, role, FLOPs, and the memory that a fusion reads and writes.

An instruction may be one or two (start and done). FLOPs are those of matrix products,
convolutions and transforms; all else is bound by memory and counted by bytes. A fusion is one node with the work of
the instructions in it.
"""

import re
from collections.abc import Sequence
from math import log2, prod
from typing import Final

from msgspec.structs import replace

from gpuwaste.estimate.program import DTYPE_BITS, Dtype, Kind
from gpuwaste.estimate.readers.graph import GraphNode, Role
from gpuwaste.estimate.readers.hlo_shape import ArrayShape, leaves
from gpuwaste.estimate.readers.hlo_split import Product
from gpuwaste.estimate.readers.hlo_text import Computation, Instruction, Module

_LIST: Final = re.compile(r"\b(\w{1,40})=\{([\d,]{0,200})\}")
_LABELS: Final = re.compile(r"dim_labels=([\w?]{1,40})_([\w?]{1,40})->([\w?]{1,40})")
_DILATE: Final = re.compile(r"lhs_dilate=([\dx]{1,60})")
_GROUPS: Final = re.compile(r"(feature|batch)_group_count=(\d{1,9})")
_CUBLAS: Final = re.compile(r'"(lhs_contracting_dimensions|lhs_batch_dimensions)":\[([\d",]{0,200})\]')
_TARGET: Final = re.compile(r'custom_call_target="([^"]{1,200})"')

_ALIAS: Final = frozenset({"bitcast", "reshape", "get-dimension-size", "optimization-barrier", "copy-done"})
_VIEW: Final = frozenset({"transpose"})
_MOVE: Final = frozenset(
    {"broadcast", "iota", "slice", "dynamic-slice", "pad", "reverse", "concatenate", "convert", "reduce-precision",
     "copy", "bitcast-convert", "stochastic-convert", "set-dimension-size"}
)  # fmt: skip
PARTS: Final = frozenset({"slice", "dynamic-slice", "gather"})
"""Operations that read a part of their first operand."""
_ELEMENTWISE: Final = frozenset(
    {"abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "complex", "cosine", "count-leading-zeros",
     "divide", "erf", "exponential", "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one",
     "logistic", "map", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real", "remainder",
     "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left", "shift-right-arithmetic",
     "shift-right-logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor", "acos", "acosh", "asin", "asinh",
     "atanh", "cosh", "sinh"}
)  # fmt: skip
HALF_BITS: Final = 16
"""XLA computes a hyperbolic tangent of such elements in f32 and stores the rounded result; one of f32 is repeated."""
ONE_INPUT: Final = frozenset({"convert", "copy", "reduce-precision"}) | _ELEMENTWISE
"""Operations that are elementwise if they have one input."""
_KINDS: Final[dict[str, tuple[Role, Kind]]] = {
    "dot": ("heavy", "mm"), "convolution": ("heavy", "conv"), "reduce": ("reduce", "reduce"),
    "reduce-window": ("reduce", "window"), "select-and-scatter": ("heavy", "window"), "gather": ("light", "gather"),
    "scatter": ("update", "scatter"), "sort": ("heavy", "sort"), "topk": ("heavy", "sort"),
    "dynamic-update-slice": ("update", "copy"), "rng": ("heavy", "random"), "rng-bit-generator": ("heavy", "random"),
    "rng-get-and-update-state": ("heavy", "random"), "fft": ("heavy", "solve"), "cholesky": ("heavy", "solve"),
    "triangular-solve": ("heavy", "solve"), "batch-norm-training": ("heavy", "bn"),
    "batch-norm-inference": ("heavy", "bn"), "batch-norm-grad": ("heavy", "bn"),
    "all-reduce": ("heavy", "collective"), "all-gather": ("heavy", "collective"),
    "all-to-all": ("heavy", "collective"), "reduce-scatter": ("heavy", "collective"),
    "collective-permute": ("heavy", "collective"), "collective-broadcast": ("heavy", "collective"),
    "all-reduce-start": ("heavy", "collective"), "all-gather-start": ("heavy", "collective"),
    "collective-permute-start": ("heavy", "collective"), "copy-start": ("heavy", "copy"),
}  # fmt: skip
_DONE: Final = frozenset({"all-reduce-done", "all-gather-done", "collective-permute-done"})
_ROLES: Final[dict[str, tuple[Role, Kind]]] = {
    **dict.fromkeys(_ELEMENTWISE, ("light", "elem")),
    **dict.fromkeys(_MOVE, ("light", "copy")),
    **dict.fromkeys(_VIEW, ("view", "copy")),
    **dict.fromkeys(_ALIAS | _DONE, ("alias", "copy")),
    **_KINDS,
}
_TARGETS: Final[tuple[tuple[str, Kind], ...]] = (  # beginnings of custom calls' names, as XLA and JAX register them
    ("__cublas", "mm"), ("__cudnn$conv", "conv"), ("__cudnn$fmha", "sdpa"), ("__cudnn$norm", "ln"),
    ("__cudnn", "custom"), ("TopK", "sort"), ("cusolver", "solve"), ("cu_cholesky", "solve"), ("cu_threefry", "random"),
)  # fmt: skip
_MARKERS: Final = ("xla.sdy", "Sharding", "SPMD", "annotate_device", "MoveToHost", "MoveToDevice", "LayoutConstraint")
START: Final = "-start"
ASYNC_PARTS: Final = (START, "-update", "-done")
"""Endings of the names of asynchronous instructions."""
WHOLE: Final = -1
"""The place of everything that a start returns."""
_AS_IT_IS: Final = frozenset({"all-reduce-start", "all-reduce-done", "send-done", "recv-done"})
"""Not in that form: the type of all-reduce-start is that of its result."""
_DIVIDED: Final = frozenset({"f32", "tf32", "f16", "bf16"})
_RANK: Final = {kind: rank for rank, kind in enumerate(
    ("copy", "elem", "gather", "reduce", "window", "random", "scatter", "sort", "bmm", "mm",
     "conv1", "gconv", "dwconv", "conv", "other")
)}  # fmt: skip
"""The kind of a fusion is the heaviest of its instructions."""
_THROUGH: Final = frozenset({"bitcast", "reshape", "copy", "convert"})


def role_and_kind(opcode: str, attributes: str) -> tuple[Role, Kind]:
    """Return how an instruction uses memory and what kind of work it is; "other" where it is unknown."""
    if opcode == "custom-call":
        target = custom_target(attributes)
        if target.startswith(_MARKERS):
            return "alias", "copy"
        return "heavy", next((kind for start, kind in _TARGETS if target.startswith(start)), "custom")
    return _ROLES.get(opcode, ("heavy", "other"))


def custom_target(attributes: str) -> str:
    """Return the name of the function that a custom call calls."""
    found = _TARGET.search(attributes)
    return found[1] if found else ""


def work(
    opcode: str, kind: Kind, attributes: str, operands: Sequence[ArrayShape], results: Sequence[ArrayShape]
) -> tuple[float, Kind]:
    """Return FLOPs of an instruction, and its kind, refined if the shapes allow it."""
    if not results or not operands:
        return 0.0, kind
    if opcode == "dot":
        return _product(dict(_LIST.findall(attributes)), operands[0], results[0])
    if kind == "mm":
        names = {"lhs_contracting_dimensions": "lhs_contracting_dims", "lhs_batch_dimensions": "lhs_batch_dims"}
        dims = {names[name]: text.replace('"', "") for name, text in _CUBLAS.findall(attributes)}
        return _product(dims, operands[0], results[0])
    if kind == "conv" and len(operands) > 1:
        return _convolution(opcode, attributes, operands, results[0])
    return (_transform(opcode, operands[0], results[0]) if kind == "solve" else 0.0), kind


def _transform(opcode: str, given: ArrayShape, result: ArrayShape) -> float:
    last = result.dims[-1] if result.dims else 1
    if opcode == "fft":
        return 5.0 * result.elements * log2(max(2, last))
    if opcode == "cholesky":
        return result.elements * last / 3
    return float(result.elements * (given.dims[-1] if given.dims else 1))


def _product(dims: dict[str, str], left: ArrayShape, result: ArrayShape) -> tuple[float, Kind]:
    """Count two FLOPs for each result element and contracted element: 2 x M x N x K, times the batch."""
    inner = _picked(left.dims, dims.get("lhs_contracting_dims", ""))
    batch = _picked(left.dims, dims.get("lhs_batch_dims", ""))
    return 2.0 * result.elements * inner, "bmm" if batch > 1 else "mm"


def _picked(dims: tuple[int, ...], indexes: str) -> int:
    return prod(dims[int(i)] for i in indexes.split(",") if i and int(i) < len(dims))


def _convolution(
    opcode: str, attributes: str, operands: Sequence[ArrayShape], result: ArrayShape
) -> tuple[float, Kind]:
    labels = _LABELS.search(attributes)
    if labels is None:
        return 0.0, "conv"
    target = custom_target(attributes) if opcode == "custom-call" else ""
    # In a gradient by the filter the result is the filter; in one by the input the gradient replaces the output.
    if "BackwardFilter" in target:
        positions, kernel = operands[1].elements, result
    elif "BackwardInput" in target:
        positions, kernel = operands[0].elements, operands[1]
    else:
        positions, kernel = result.elements, operands[1]
    names = labels[2]
    if len(names) != len(kernel.dims):
        return 0.0, "conv"
    per_output = float(prod(size for name, size in zip(names, kernel.dims, strict=True) if name != "o"))
    spatial = prod(size for name, size in zip(names, kernel.dims, strict=True) if name not in "io")
    dilate = _DILATE.search(attributes)
    if dilate:  # zeros between the input's elements are not multiplied
        per_output /= max(1, prod(int(part) for part in dilate[1].split("x") if part))
    groups = max((int(count) for _, count in _GROUPS.findall(attributes)), default=1)
    inputs = dict(zip(names, kernel.dims, strict=True)).get("i", 1)
    kind: Kind = "conv1" if spatial == 1 else "conv"
    if groups > 1:
        kind = "dwconv" if inputs == 1 else "gconv"
    return 2.0 * positions * per_output, kind


def started(each: Instruction) -> Instruction | None:
    """Return the instruction of a start, with only its results' type; None if that lacks operands and results."""
    if (
        each.opcode in _AS_IT_IS
        or isinstance(each.type, ArrayShape)
        or len(each.type) <= max(0, result_place(each.opcode))
    ):
        return None
    known = role_and_kind(each.opcode, each.attributes)[1] != "other"
    opcode = each.opcode if known else each.opcode.removesuffix(START)
    return Instruction(each.name, opcode, each.type[result_place(each.opcode)], each.operands, each.attributes)


def result_place(opcode: str) -> int:
    """Return the place of an operation's results in the tuple of its start: after the operands, except for a copy."""
    if opcode.endswith("-update"):
        return WHOLE
    return 0 if opcode.startswith("copy-") else 1


def ends(opcode: str) -> bool:
    """Return whether an instruction passes on what a start returned."""
    return not opcode.endswith(START) and opcode not in _AS_IT_IS


def product_of(
    attributes: str, operands: Sequence[ArrayShape], result: ArrayShape, bits: Sequence[int]
) -> Product | None:
    """Return the dimensions of a dot; None where XLA does not divide it: integers, several contracted dimensions.

    `bits` are those of the operands' elements before conversions.
    """
    dims = dict(_LIST.findall(attributes))
    if any(dims.get(f"{side}_contracting_dims", "").count(",") for side in ("lhs", "rhs")):
        return None
    if len(operands) < 2 or any(each.dtype not in _DIVIDED for each in operands):  # noqa: PLR2004 - left and right
        return None
    left, right = operands[:2]
    inner = _picked(left.dims, dims.get("lhs_contracting_dims", ""))
    batch = _picked(left.dims, dims.get("lhs_batch_dims", ""))
    each = max(1, inner * batch)
    rows, columns = left.elements // each, right.elements // each
    return Product(batch, rows, columns, inner, bits[0], bits[1], DTYPE_BITS[result.dtype])


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
    """Return the work of a fused computation, independent of its arguments, and its type; None: the arguments' type."""
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
    """Return for each parameter of which only parts are read the bytes read."""
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
    """Let a result that is an update of a parameter be written into that parameter's memory."""
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
