"""A program's operations as the public model computes them: matrix products, convolutions, bytes moved."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from gpuwaste.estimate.program import UNKNOWN_KINDS, Dtype, Kind, Op, Program
from gpuwaste.estimate.public.convolution_time import Convolutions
from gpuwaste.estimate.public.dimensions import Row, convolution, element_b, pointwise, product, size_of
from gpuwaste.estimate.public.product_time import Floats, Products

CONVOLUTIONS: Final = frozenset({"conv", "gconv"})
ROWWISE: Final = frozenset({"softmax", "ln"})
LONG_ROW: Final = 1024
"""Elements of a row that one block of threads keeps."""
_MATRIX: Final = 2  # dimensions


@dataclass(slots=True)
class StepWork:
    """What one step executes: products and convolutions by element type, bytes by kind, number of operations.

    A row has the fields of Products or Convolutions, and trips.
    """

    products: dict[str, list[Row]] = field(default_factory=dict)
    convolutions: dict[str, list[Row]] = field(default_factory=dict)
    moved: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    launches: float = 0.0
    unknown: float = 0.0
    """Bytes and FLOPs of kernels that only their author knows."""
    known: float = 0.0
    """The same of all others."""
    _columns: dict[tuple[str, str], list[Floats]] = field(default_factory=dict)
    """Rows as arrays: a program is computed for many GPU types."""

    def products_of(self, dtype: str) -> tuple[Products, Floats]:
        """Return the products in a type, and how often each runs."""
        *columns, trips = self._arrays("products", dtype, self.products[dtype])
        return Products(*columns), trips

    def convolutions_of(self, dtype: str) -> tuple[Convolutions, Floats]:
        """Return the convolutions in a type, and how often each runs."""
        *columns, trips = self._arrays("convolutions", dtype, self.convolutions[dtype])
        return Convolutions(*columns), trips

    def _arrays(self, what: str, dtype: str, rows: list[Row]) -> list[Floats]:
        if (what, dtype) not in self._columns:
            self._columns[what, dtype] = list(np.array(rows, dtype=np.float64).T.copy())
        return self._columns[what, dtype]


def work_of(program: Program) -> StepWork:
    """Return what a step of the program executes; equal operations are added up."""
    equal: dict[tuple[Kind, Dtype, float, float, tuple[tuple[int, ...], ...]], float] = defaultdict(float)
    for op in program.ops:
        equal[op.kind, op.dtype, op.flops, op.bytes_read + op.bytes_written, op.shapes] += op.trips
    found = StepWork()
    for (kind, dtype, flops, moved, shapes), trips in equal.items():
        _add(found, Op(kind=kind, dtype=dtype, flops=flops, bytes_read=moved, shapes=shapes, trips=trips))
    return found


def _add(work: StepWork, op: Op) -> None:
    if not op.flops and not op.bytes_read:
        return
    work.launches += op.trips
    if op.kind in UNKNOWN_KINDS:
        work.unknown += op.trips * (op.flops + op.bytes_read)
        return
    work.known += op.trips * (op.flops + op.bytes_read)
    if op.kind in CONVOLUTIONS and op.flops:
        work.convolutions.setdefault(op.dtype, []).extend((*each, op.trips) for each in convolution(op))
    elif op.kind in _PRODUCTS and op.flops:
        work.products.setdefault(op.dtype, []).extend((*each, op.trips) for each in _PRODUCTS[op.kind](op))
    else:
        work.moved[moved_kind(op.kind, op.shapes[0][-1] if op.shapes and op.shapes[0] else 0)] += (
            op.trips * op.bytes_read
        )


def moved_kind(kind: str, row: float) -> str:
    """Return the kind under which the share of an operation is kept: long rows are read more than once."""
    return f"{kind} long" if kind in ROWWISE and row > LONG_ROW else kind


def _attention(op: Op) -> list[Row]:
    """Return the two products of scaled dot-product attention: FLOPs are 4 x heads x length^2 x width."""
    shape = op.shapes[0] if op.shapes else ()
    if len(shape) < _MATRIX:
        return [product(op)]
    length, width = size_of(shape[-2:-1]), size_of(shape[-1:])
    heads = size_of(shape[:-2])
    keys = max(1.0, op.flops / 4 / heads / length / width)
    return [(heads, length, width, keys, element_b(op)), (heads, length, keys, width, element_b(op))]


_PRODUCTS: Final[Mapping[str, Callable[[Op], list[Row]]]] = {
    "mm": lambda op: [product(op)], "bmm": lambda op: [product(op)], "conv1": pointwise, "sdpa": _attention,
}  # fmt: skip
