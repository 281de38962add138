"""NeuSight's op graphs as programs in the neutral form: the products that they list, and the bytes that torch moves.

A graph lists a node's operations with sizes, and the shapes of its inputs and result. Products are taken as listed.
What other operations move follows from the shapes and from torch's formulas of gradients (derivatives.yaml of torch
2.1), which the lists have only roughly: compared with the torch probe on the same models, see test_op_graphs.py. The
loss's gradient is added: it is in the measured times, and in no list.
"""

import ast
import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from gpuwaste.estimate.program import Kind, Op, Program, fingerprint

F32_B: Final = 4
_ONE_LAYER: Final = re.compile(r"_(?:layer|layers|h)_0_")
_ANY_LAYER: Final = re.compile(r"_(?:layer|layers|h)_\d+_")
_BLOCK_ENDS: Final = frozenset({"Linear", "VECln", "EMBEDDING"})
_KINDS: Final[dict[str, Kind]] = {
    "VECln": "ln", "VECsoftmax": "softmax", "VECgelu": "act", "VECrelu": "act", "VECtanh": "act",
}  # fmt: skip
_MASK: Final = 1 / F32_B  # of bytes, beside elements of 4
_TRANSPOSED: Final = ("permute", "transpose")
_MAXIMUM: Final[tuple[tuple[float, float], ...]] = (
    (1, _MASK), (1, 1), (2 + _MASK, 1), (1, _MASK), (1 + _MASK, 1),
)  # fmt: skip
"""Arrays read and written by the gradient of a maximum: equal, half, where, less, masked_fill_."""
_GRADIENTS: Final[dict[str, tuple[tuple[float, float], ...]]] = {
    "VECmulu": ((1, 1),), "VECdivu": ((1, 1),), "VECpowu": ((1, 1), (1, 1), (2, 1)), "where": ((1, 1),),
    "VECln": ((2, 1),), "VECsoftmax": ((2, 1),), "VECgelu": ((2, 1),), "VECrelu": ((2, 1),), "VECtanh": ((2, 1),),
    "dropout": ((1 + _MASK, 1),), "max": _MAXIMUM,
}  # fmt: skip
"""Arrays of the result's size that each operation of a node's gradient reads and writes."""
_NOTHING: Final = frozenset({"VECadd", "VECaddu", "getitem", "misc", "contiguous", "EMBEDDING", "VECmul", "VECdiv"})
_UNBIASED: Final = frozenset({"lm_head"})


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One node of a graph; `before` and `after` are names."""

    name: str
    kind: str
    forward: list[Any]
    backward: list[Any]
    accumulated: list[Any]
    inputs: list[tuple[int, ...]]
    output: tuple[int, ...]
    before: frozenset[str]
    after: frozenset[str]

    @property
    def transposed(self) -> bool:
        """Whether its input is a transposed view."""
        return any(each.startswith(_TRANSPOSED) for each in self.before)


def program_of(case: str, text: str, layers: int) -> Program:
    """Return the graph in a CSV text as a program: f32 operations; trips are the layers of one that is repeated."""
    rows = [_row(each) for each in csv.DictReader(io.StringIO(text))]
    graph = _GraphOps(rows, layers, biased=not case.startswith("switch"), attention_dropout=not case.startswith("opt"))
    found = list(graph.ops(training="-train-" in case))
    return Program(
        name=case, source="torch", ops=found, buffers=[], parameters_b=0, outputs_b=0, training="-train-" in case,
        fingerprint=fingerprint(found, []),
    )  # fmt: skip


def _row(row: dict[str, str]) -> GraphRow:
    forward, backward, accumulated = (ast.literal_eval(row[name]) for name in ("FwOps", "BwOps", "AccOps"))
    inputs = [each for each in ast.literal_eval(row["InputShapes"]) if isinstance(each, tuple)]
    before, after = (frozenset(ast.literal_eval(row[name])) for name in ("Prev", "Next"))
    kind = "max" if row["OpName"] == "misc" and row["Name"].startswith("max_") else row["OpName"]
    output = ast.literal_eval(row["OutputShape"])
    return GraphRow(row["Name"], kind, forward, backward, accumulated, inputs, output, before, after)


class _GraphOps:
    """The operations of a graph; of a graph with one layer, that layer's run `layers` times."""

    def __init__(self, rows: list[GraphRow], layers: int, *, biased: bool, attention_dropout: bool) -> None:
        self.rows = rows
        self.layers = float(layers)
        self.repeated = {rows[place].name for place in _repeated(rows, layers)}
        self.biased = biased
        self.attention_dropout = attention_dropout
        """OPT's is 0, which torch skips."""
        self.trained: set[str] = set()
        for row in rows:
            passes = row.output != (1,) or row.name.startswith("split")
            if passes and (row.kind in {"EMBEDDING", "Linear"} or row.before & self.trained):
                self.trained.add(row.name)

    def ops(self, *, training: bool) -> Iterator[Op]:
        """Yield the operations of one step."""
        for row in self.rows:
            trips = self._trips({row.name})
            if row.kind == "dropout" and not self.attention_dropout and "softmax" in row.before:
                continue
            yield from (_times(each, trips) for each in _forward(row))
            if training and row.name in self.trained:
                yield from (_times(each, trips) for each in self._backward(row))
                yield from self._sums(row)
        if training and self.rows:
            logits = _elements(self.rows[-1].inputs[:1])
            yield _moving("reduce", "nll_loss_backward", 0, logits)
            yield _moving("softmax", "log_softmax_backward", 2 * logits, logits)

    def _trips(self, names: Iterable[str]) -> float:
        return self.layers if self.repeated.intersection(names) else 1.0

    def _backward(self, row: GraphRow) -> Iterator[Op]:
        yield from _backward(row)
        if row.kind == "Linear" and self.biased and row.name not in _UNBIASED:
            yield _moving("reduce", "bias", _elements([row.output]), row.output[-1])
        for _, sizes in row.accumulated:
            yield _moving("elem", "accumulated", 2 * prod(sizes), prod(sizes))

    def _sums(self, row: GraphRow) -> Iterator[Op]:
        """Yield the additions of the gradients of a result that several nodes use."""
        users = (row.after & self.trained) - {"output"} if row.output != (1,) else set()
        size = _elements([row.output])
        for _ in range(len(users) - 1):
            yield _times(_moving("elem", "gradients", 2 * size, size), self._trips(users))


def _repeated(rows: list[GraphRow], layers: int) -> range:
    """Return the rows of the only layer that a graph has, empty where it has all of them."""
    named = [place for place, row in enumerate(rows) if _ONE_LAYER.search(row.name)]
    if not layers or not named or len({m.group() for row in rows if (m := _ANY_LAYER.search(row.name))}) > 1:
        return range(0)
    end = named[-1] + 1
    while end < len(rows) and rows[end].kind not in _BLOCK_ENDS and "getitem" not in rows[end].name:
        end += 1
    return range(named[0], end)


def _forward(row: GraphRow) -> Iterator[Op]:
    size = _elements([row.output])
    if row.kind in {"BMM", "Linear"}:
        yield from _copied_operands(row)
        yield from (_product(name, (1, 1, *sizes)[-4:]) for name, sizes in row.forward)
    elif row.kind == "EMBEDDING":
        yield _moving("gather", row.name, size + _elements(row.inputs), size)
    elif row.kind == "dropout":
        yield _moving("random", row.name, size, size * (1 + _MASK))
    elif row.kind == "max" or (row.kind == "where" and row.forward):
        yield _moving("elem", row.name, _elements(row.inputs), size)
    elif row.kind == "contiguous" or row.name.startswith("reshape"):
        if row.transposed:
            yield _moving("copy", row.name, size, size)
    elif row.forward and row.kind != "getitem":
        kind: Kind = "elem" if row.kind == "fused" or row.kind.startswith("VEC") else "copy"
        yield _moving(_KINDS.get(row.kind, kind), row.name, _elements(row.inputs), size)


def _backward(row: GraphRow) -> Iterator[Op]:
    size = _elements([row.output])
    if row.kind in {"BMM", "Linear"}:
        yield from _copied_operands(row)  # the gradients, back into the layout of the operands
        yield from (_product(name, (1, 1, *sizes)[-4:]) for name, sizes in row.backward)
    elif row.kind == "EMBEDDING":
        yield _moving("scatter", row.name, size, prod(row.backward[0][1][0]))
    elif row.kind in {"VECmul", "VECdiv"}:
        for _ in (each for each in row.inputs if prod(each) == size):
            yield _moving("elem", row.name, size * (2 if row.kind == "VECmul" else 1), size)
    elif (row.kind == "contiguous" and row.transposed) or row.name.startswith("split"):
        moved = _elements(row.inputs[:1])
        yield _moving("copy", row.name, moved, moved)
    elif row.kind in _GRADIENTS:
        for read, written in _GRADIENTS[row.kind]:
            yield _moving(_KINDS.get(row.kind, "elem"), row.name, read * size, written * size)
    elif row.kind not in _NOTHING:
        for _, shapes in row.backward:
            moved = _elements([each for each in shapes if isinstance(each, tuple)])
            yield _moving("copy", row.name, moved / 2, moved / 2)


def _copied_operands(row: GraphRow) -> Iterator[Op]:
    """Yield the copies of matmul: transposed operands of several batches and heads have no form with one of both."""
    if row.name.startswith("matmul") and row.inputs[0][0] > 1:
        places = len([each for each in row.before if each.startswith(_TRANSPOSED)])
        for shape in sorted(row.inputs, key=prod)[:places]:
            yield _moving("copy", row.name, prod(shape), prod(shape))


def _product(name: str, sizes: tuple[int, int, int, int]) -> Op:
    batch, rows, inner, columns = sizes
    shapes = ((batch, rows, columns), (batch, rows, inner), (batch, inner, columns))
    return Op(
        kind="bmm" if name == "BMM" else "mm", name=name, dtype="f32", flops=2.0 * batch * rows * inner * columns,
        bytes_read=F32_B * _elements(shapes[1:]), bytes_written=F32_B * _elements(shapes[:1]), shapes=shapes,
    )  # fmt: skip


def _moving(kind: Kind, name: str, read: float, written: float) -> Op:
    """Return an operation that reads and writes so many elements."""
    return Op(kind=kind, name=name[:256], dtype="f32", bytes_read=F32_B * read, bytes_written=F32_B * written)


def _times(op: Op, trips: float) -> Op:
    return Op(
        kind=op.kind, name=op.name, dtype=op.dtype, flops=op.flops, bytes_read=op.bytes_read,
        bytes_written=op.bytes_written, trips=trips, shapes=op.shapes,
    )  # fmt: skip


def _elements(shapes: Iterable[tuple[int, ...]]) -> float:
    return float(sum(prod(shape) for shape in shapes))
