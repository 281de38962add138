"""Matrix products that XLA divides along the contracted dimension, as its pass SplitkRewriter does for Hopper.

A product with too few tiles to fill the GPU becomes partial products, which are added up later. XLA takes the number
of parts with the least cost by its own model (xla/backends/gpu/transforms/splitk_rewriter.cc): the numbers here are
those of that file, for an H100's 132 processors. All 1,263 products that could be found again in 88 compiled programs
had these parts.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

_TILE: Final = 128
_PROCESSORS: Final = 132
_COMPUTE: Final = 100.0
"""Cost of a FLOP of a tile, for each wave of tiles."""
_MEMORY: Final = 0.194136
"""Cost of a byte that the product reads or writes."""
_SUM_MEMORY: Final = 193.1384
"""Cost of a byte that adding up the parts reads or writes."""
_LAUNCH: Final = 4.36e7
"""Cost of one more kernel."""
_PARTS: Final = tuple(1 << power for power in range(12))
SUM_B: Final = 4
"""Bytes of an element of a partial result."""
_SUM_BITS: Final = 8 * SUM_B
_ALIGNED_BITS: Final = 128


@dataclass(frozen=True, slots=True)
class Product:
    """The dimensions of a matrix product, and the bits of an element before conversions."""

    batch: int
    rows: int
    columns: int
    inner: int
    left_bits: int
    right_bits: int
    result_bits: int


def parts_of(product: Product) -> int:
    """Return into how many parts XLA divides the contracted dimension."""
    if not min(product.batch, product.rows, product.columns, product.inner):
        return 1
    return min(_PARTS, key=lambda parts: _cost(product, parts))


def padded_inner(product: Product, parts: int) -> int:
    """Return the contracted elements with the padding that makes equal, aligned parts of them."""
    least_bits = min(_ALIGNED_BITS, product.left_bits, product.right_bits)
    step = parts * _ALIGNED_BITS // max(1, least_bits)
    return ceil(product.inner / step) * step


def _cost(of: Product, parts: int) -> float:
    rows, columns = min(of.rows, _TILE), min(of.columns, _TILE)
    batch = of.batch * parts
    tiles = batch * ceil(of.rows / _TILE) * ceil(of.columns / _TILE)
    waves = max(1.0, tiles * rows * columns / (_PROCESSORS * _TILE**2))
    compute = 2.0 * rows * columns * ceil(of.inner / parts) * waves * _COMPUTE
    results = of.batch * of.rows * of.columns
    read_b = of.batch * of.inner * (of.rows * of.left_bits + of.columns * of.right_bits) / 8
    written_b = results * parts * (_SUM_BITS if parts > 1 else of.result_bits) / 8
    product = max(compute, (read_b + written_b) * _MEMORY)
    if parts == 1:
        return product
    added_b = results * (parts * _SUM_BITS + of.result_bits) / 8
    return product + _LAUNCH + added_b * _SUM_MEMORY
