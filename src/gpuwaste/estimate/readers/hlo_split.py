"""Memory of small matrix products, which XLA divides over the contracted dimension to fill the GPU."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.estimate.readers.hlo_shape import ArrayShape

_TILE: Final = 32
_MOST_TILES: Final = 832
_SHORTEST: Final = 20
_LEAST_INNER: Final = 80
_PARTS: Final = ((2048, 32), (512, 16), (0, 8))  # contracted elements, parts at most
_FEWEST: Final = 4
_NARROW: Final = 16
_LONG: Final = 1024


def split(flops: float, result: ArrayShape, operands: Sequence[ArrayShape]) -> tuple[int, int]:
    """Return into how many parts XLA splits the contracted dimension of a small matrix product, and bytes of copies.

    A product with fewer tiles than the GPU has processors is divided into up to 32 parts, each with a partial sum;
    where the parts are uneven, the operands are padded into copies. Seen in programs compiled for an H100. Large
    products, where memory counts, are not split.
    """
    inner = int(flops / 2 / max(1, result.elements))
    columns = result.dims[-1] if result.dims else 1
    rows = result.elements // max(1, columns)
    if inner < _LEAST_INNER or not result.elements or (min(rows, columns) < _NARROW and inner < _LONG):
        return 1, 0
    tiles = -(-columns // _TILE) * -(-rows // _TILE)
    parts = next(parts for least, parts in _PARTS if inner >= least)
    while parts > _FEWEST and (tiles * parts > _MOST_TILES or inner / parts < _SHORTEST):
        parts //= 2
    if tiles * parts > _MOST_TILES or inner / parts < _SHORTEST:
        return 1, 0
    padded = parts * (-(-inner // (4 * parts)) * 4)
    return parts, sum(each.size_b for each in operands) * padded // inner if padded != inner else 0
