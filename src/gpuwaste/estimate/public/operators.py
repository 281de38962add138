"""A program's operations as the public model computes them: matrix products, convolutions, bytes moved.

Dimensions follow from FLOPs and the numbers of elements of result and operands, whatever the layout: of a product the
inner dimension is FLOPs / 2 / result, and the batch is left x right / inner^2 / result.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Final

import numpy as np

from gpuwaste.estimate.program import DTYPE_BITS, UNKNOWN_KINDS, Dtype, Kind, Op, Program
from gpuwaste.estimate.public.convolution_time import Convolutions
from gpuwaste.estimate.public.product_time import Floats, Products

PRODUCTS: Final = frozenset({"mm", "bmm", "conv1"})
CONVOLUTIONS: Final = frozenset({"conv", "gconv"})
ROWWISE: Final = frozenset({"softmax", "ln"})
LONG_ROW: Final = 1024
"""Elements of a row that one block of threads keeps."""
_OPERANDS: Final = 3  # the result and two operands
_LARGEST_KERNEL: Final = 11
_IMAGE_DIMENSIONS: Final = 4
Row = tuple[float, ...]
"""The fields of Products or Convolutions, and trips."""


@dataclass(slots=True)
class StepWork:
    """What one step executes: products and convolutions by element type, bytes by kind, number of operations."""

    products: dict[str, list[Row]] = field(default_factory=dict)
    convolutions: dict[str, list[Row]] = field(default_factory=dict)
    moved: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    launches: float = 0.0
    unknown: float = 0.0
    """Bytes and FLOPs of kernels that only their author knows."""
    known: float = 0.0
    """The same of all others."""


def products_of(rows: Iterable[Row]) -> tuple[Products, Floats]:
    """Return products and how often each runs."""
    *table, trips = np.array(list(rows), dtype=np.float64).T
    return Products(*table), trips


def convolutions_of(rows: Iterable[Row]) -> tuple[Convolutions, Floats]:
    """Return convolutions and how often each runs."""
    *table, trips = np.array(list(rows), dtype=np.float64).T
    return Convolutions(*table), trips


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
        work.convolutions.setdefault(op.dtype, []).append((*_convolution(op), op.trips))
    elif op.kind in PRODUCTS and op.flops:
        work.products.setdefault(op.dtype, []).append((*_product(op), op.trips))
    elif op.kind == "sdpa" and op.flops:
        work.products.setdefault(op.dtype, []).extend((*each, op.trips) for each in _attention(op))
    else:
        work.moved[moved_kind(op.kind, op.shapes[0][-1] if op.shapes and op.shapes[0] else 0)] += (
            op.trips * op.bytes_read
        )


def moved_kind(kind: str, row: float) -> str:
    """Return the kind under which the share of an operation is kept: long rows are read more than once."""
    return f"{kind} long" if kind in ROWWISE and row > LONG_ROW else kind


def _sizes(op: Op) -> list[float]:
    """Return the elements of the result and of its operands, at least one each."""
    return [float(max(1, prod(shape))) for shape in op.shapes]


def _element_b(op: Op) -> float:
    return DTYPE_BITS[op.dtype] / 8


def _product(op: Op) -> tuple[float, float, float, float, float]:
    sizes = _sizes(op)
    if len(sizes) < _OPERANDS:
        return _cube(op)
    result, left, right = sizes[:_OPERANDS]
    inner = max(1.0, op.flops / 2 / result)
    batch = max(1.0, round(left * right / inner**2 / result))
    rows = max(1.0, left / batch / inner)
    return batch, rows, inner, max(1.0, result / batch / rows), _element_b(op)


def _cube(op: Op) -> tuple[float, float, float, float, float]:
    """Return a product of the same FLOPs with equal sides: its operands are not in the file."""
    side = max(1.0, (op.flops / 2) ** (1 / 3))
    return 1.0, side, side, side, _element_b(op)


def _convolution(op: Op) -> Row:
    """Return the convolution: channels of the result follow from the kernels' elements, places from the shapes."""
    sizes = _sizes(op)
    if len(sizes) < _OPERANDS:
        _, rows, inner, columns, element_b = _cube(op)
        return 1.0, rows, 1.0, inner, columns, 1.0, 1.0, element_b
    result, given, kernels = sizes[:_OPERANDS]
    inner = max(1.0, op.flops / 2 / result)
    columns = min(result, max(1.0, round(kernels / inner)))
    points = float(_points(op.shapes[2]))
    channels = max(1.0, inner / points)
    height, width = _places(op.shapes[0], columns)
    images = max(1.0, result / columns / height / width)
    strided = float(abs(given / channels - result / columns) > 0.5)  # noqa: PLR2004 half a place: they are whole numbers
    return images, height, width, channels, columns, points, strided, _element_b(op)


def _points(kernels: tuple[int, ...]) -> int:
    """Return the places of a kernel: the product of its two equal smallest dimensions, 1 where there are none."""
    small = sorted(kernels)[:2]
    return prod(small) if len(kernels) > _OPERANDS and small[0] == small[-1] and small[0] <= _LARGEST_KERNEL else 1


def _places(result: tuple[int, ...], columns: float) -> tuple[float, float]:
    """Return height and width of a result, whose channels come second or last."""
    if len(result) != _IMAGE_DIMENSIONS:
        return float(max(1, prod(result))) / columns, 1.0
    height, width = result[1:3] if result[-1] == columns and result[1] != columns else result[2:]
    return float(max(1, height)), float(max(1, width))


def _attention(op: Op) -> list[tuple[float, float, float, float, float]]:
    """Return the two products of scaled dot-product attention: FLOPs are 4 x heads x length^2 x width."""
    shape = op.shapes[0] if op.shapes else ()
    if len(shape) < _OPERANDS - 1:
        return [_cube(op)]
    length, width = float(max(1, shape[-2])), float(max(1, shape[-1]))
    heads = max(1.0, prod(shape[:-2]))
    keys = max(1.0, op.flops / 4 / heads / length / width)
    return [(heads, length, width, keys, _element_b(op)), (heads, length, keys, width, _element_b(op))]
