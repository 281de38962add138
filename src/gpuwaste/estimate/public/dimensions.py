"""Dimensions of matrix products and convolutions, from FLOPs and the shapes of result and operands, in any layout.

A program's operations have no dimensions by name. Of a product the inner dimension is FLOPs / 2 / result, and the batch
left x right / inner^2 / result. Of a convolution one array is the filters (K), one has the inputs' channels (X), one
the outputs' (Y): all three are tried in each place, and the one that fits the FLOPs, 2 x Y x K / channels of Y, is it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import log, prod
from typing import Final

from gpuwaste.estimate.program import DTYPE_BITS, MAX_AMOUNT, Op

Shape = tuple[int, ...]
Row = tuple[float, ...]
"""The fields of Products or Convolutions."""
_OPERANDS: Final = 4  # of a convolution, the first ones: a fused operation has more
_MOST_SHAPES: Final = 9
_NEAR: Final = 1e-6
_PLANE: Final = 2  # dimensions of an image
_MOST_DIMENSIONS: Final = 8
_UNLIKE: Final = log(2.5)
"""A convolution of so many more or fewer FLOPs is another one; zeros between strided gradients count in part."""
_ORDERS: Final[dict[str, tuple[int, int, int]]] = {"forward": (0, 1, 2), "input": (1, 0, 2), "filters": (2, 1, 0)}
"""Places of Y, X and K among result, first and second operand."""


def size_of(shape: Shape) -> float:
    """Return the elements of an array, at least one, bounded."""
    return float(min(max(1, prod(shape)), int(MAX_AMOUNT)))


def element_b(op: Op) -> float:
    """Return bytes of an element."""
    return DTYPE_BITS[op.dtype] / 8


def product(op: Op) -> Row:
    """Return batch, rows, inner, columns, bytes of an element; a product with equal sides where shapes are missing."""
    if not op.shapes[1:]:
        side = max(1.0, (op.flops / 2) ** (1 / 3))
        return 1.0, side, side, side, element_b(op)
    result, inner = size_of(op.shapes[0]), max(1.0, op.flops / 2 / size_of(op.shapes[0]))
    for left, right in _pairs(op.shapes[1:_MOST_SHAPES], inner):
        batch = left * right / inner**2 / result
        rows = left / inner / max(1.0, round(batch))
        if _whole(batch) and _whole(rows) and _whole(result / round(batch) / rows):
            return float(round(batch)), rows, inner, result / round(batch) / rows, element_b(op)
    rows = min(result, max(1.0, size_of(op.shapes[1]) / inner))
    return 1.0, rows, inner, result / rows, element_b(op)


def _pairs(operands: Sequence[Shape], inner: float) -> list[tuple[float, float]]:
    """Return what can be left and right, first those with the inner dimension; one that is both is once in the file."""
    pairs = [*combinations(operands, 2), *((each, each) for each in operands)]
    likely = sorted(pairs, key=lambda pair: sum(inner not in each for each in pair))
    return [(size_of(left), size_of(right)) for left, right in likely]


def _whole(number: float) -> bool:
    return number > 1 - _NEAR and abs(number - round(number)) < _NEAR * number


@dataclass(frozen=True, slots=True)
class _Convolved:
    """A convolution whose arrays are known, forward or one of its gradients."""

    order: str
    places: tuple[int, ...]
    """Of an image of Y."""
    given: tuple[int, ...]
    """Of an image of X."""
    kernel: tuple[int, ...]
    images: int
    inputs: int
    outputs: int
    unlike: float
    """Logarithm of its FLOPs over those of the operation."""
    inside: bool
    """Whether the outputs' channels are neither first nor last of the filters' dimensions."""

    @property
    def key(self) -> tuple[float, int, bool]:
        """What is least for the most likely one."""
        return round(self.unlike, 2), prod(self.kernel), self.inside

    @property
    def strided(self) -> float:
        """1 where Winograd's method is not possible: strides, kernels that are no square."""
        if not len(self.places) == len(self.given) == len(self.kernel) == _PLANE or len(set(self.kernel)) > 1:
            return 1.0
        zipped = zip(self.given, self.places, self.kernel, strict=True)
        return float(any(given > place + side - 1 for given, place, side in zipped))


def convolution(op: Op) -> list[Row]:
    """Return images, height, width, channels, columns, points, strided, bytes of an element; two gradients are two."""
    found = _convolved(op)
    if found is None:
        _, rows, inner, columns, size = product(op)
        return [(1.0, rows, 1.0, inner, columns, 1.0, 1.0, size)]
    times, which = found
    half = op.flops / 2 / times
    points = float(prod(which.kernel))
    if which.order == "filters":
        rows, columns = which.inputs * points, float(which.outputs)
        row = 1.0, rows, 1.0, max(1.0, half / rows / columns), columns, 1.0, 1.0, element_b(op)
        return [row] * times
    plane, columns = (which.given, which.inputs) if which.order == "input" else (which.places, which.outputs)
    height, width = plane if len(plane) == _PLANE else (prod(plane), 1)
    channels = max(1e-3, half / which.images / height / width / columns / points)
    places = float(which.images), float(height), float(width)
    return [(*places, channels, float(columns), points, which.strided, element_b(op))] * times


def pointwise(op: Op) -> list[Row]:
    """Return a convolution with kernels of one point as a product."""
    found = _convolved(op)
    if found is None:
        return [product(op)]
    times, which = found
    places = max(1.0, op.flops / 2 / times / which.inputs / which.outputs)
    if which.order == "filters":
        return [(1.0, float(which.inputs), places, float(which.outputs), element_b(op))] * times
    sides = (which.inputs, which.outputs) if which.order == "forward" else (which.outputs, which.inputs)
    return [(1.0, places, float(sides[0]), float(sides[1]), element_b(op))] * times


def _convolved(op: Op) -> tuple[int, _Convolved] | None:
    """Return what the arrays are; 2 where the operation is both gradients in one, as earlier probes wrote it."""
    shapes = [each for each in op.shapes[: _OPERANDS + 1] if len(each) <= _MOST_DIMENSIONS and 0 not in each]
    if len(shapes) < len(_ORDERS) or shapes[0] != op.shapes[0]:
        return None
    for times in (1, 2):
        tried = (
            one
            for pair in permutations(shapes[1:], 2)
            for order in _ORDERS
            if (one := _fitted(order, (shapes[0], *pair), max(1.0, op.flops / 2 / times))) is not None
        )
        best = min(tried, key=lambda one: one.key, default=None)
        if best is not None and (times > 1 or best.unlike < log(2) - _NEAR):
            return times, best
    return None


def _fitted(order: str, arrays: tuple[Shape, Shape, Shape], half: float) -> _Convolved | None:
    """Return the convolution if the arrays can be Y, X and K in this order."""
    y, x, k = (arrays[place] for place in _ORDERS[order])
    if min(len(y), len(x)) < _PLANE or len(k) <= _PLANE:
        return None
    fits = []
    for outputs in set(y) & set(k):
        unlike = abs(log(size_of(y) * size_of(k) / outputs / half))
        filters, places = _without(k, outputs), _without(y, outputs)
        inputs = next((each for each in _channels(filters) if each in x), _channels(filters)[0])
        images = next((each for each in places if each in x), None)
        if images is not None and unlike < _UNLIKE:
            given = _without(_without(x, inputs if inputs in x else max(x)), images)
            kernel = _without(filters, inputs)
            inside = k.count(outputs) > 1 or outputs not in {k[0], k[-1]}
            plane = _without(places, images)
            if len(plane) < len(given) and prod(plane) == prod(given):  # a reshaped array has the form it is stored in
                plane = given
            given = plane if len(given) < len(plane) and prod(plane) == prod(given) else given
            fits.append(_Convolved(order, plane, given, kernel, images, inputs, outputs, unlike, inside))
    return min(fits, key=lambda one: one.key, default=None)


def _channels(filters: Shape) -> list[int]:
    """Return what can be the channels of filters: first those that leave a kernel with equal sides."""
    return sorted(set(filters), key=lambda each: (len(set(_without(filters, each))) > 1, filters.index(each)))


def _without(shape: Shape, size: int) -> Shape:
    """Return a shape without the first dimension of this size."""
    place = shape.index(size) if size in shape else 0
    return shape[:place] + shape[place + 1 :]
