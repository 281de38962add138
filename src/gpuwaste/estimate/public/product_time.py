"""The time of a matrix product on one GPU: tiles in waves over its processors, bounded by power and by bandwidth.

A tile computes rows x columns of the result over the whole inner dimension; tiles run in waves, one on each processor,
and a processor waits for the last wave. Few tiles with a long inner dimension are divided along it (split-K). The shape
of tiles that takes the least time is the one that libraries choose. Rows and columns beyond the result are computed in
vain.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.public.coefficients import ProductShape
from gpuwaste.estimate.public.device_rates import DeviceRates

Floats = NDArray[np.float64]
LONG_ROW: Final = 8192
"""Inner dimension from which rows of f32 are on memory pages of their own (32 KiB), which older GPUs miss."""
_MOST_DOUBLINGS: Final = 3
_ALIGNED: Final = 4


@dataclass(frozen=True, slots=True)
class Products:
    """Matrix products [n]: `batch` times rows x inner by inner x columns; `element_b` bytes of an element."""

    batch: Floats
    rows: Floats
    inner: Floats
    columns: Floats
    element_b: Floats

    @property
    def flops(self) -> Floats:
        """FLOPs of each, a multiply-add counted as two."""
        return 2 * self.batch * self.rows * self.inner * self.columns

    @property
    def bytes(self) -> Floats:
        """Bytes of operands and result, each once."""
        one = self.rows * self.inner + self.inner * self.columns + self.rows * self.columns
        return self.batch * one * self.element_b


def product_seconds(of: Products, shape: ProductShape, on: DeviceRates) -> Floats:
    """Return seconds of each product [n], without its launch."""
    in_tiles = np.full(len(of.batch), np.inf)
    for rows, columns, share in shape.tiles:
        in_tiles = np.minimum(in_tiles, _in_tiles(of, shape, on, (rows, columns)) / share)
    doublings = np.clip(np.log2(of.inner / LONG_ROW), 0, _MOST_DOUBLINGS)
    in_tiles = in_tiles * (1 + shape.misaligned * _misaligned(of)) * (1 + shape.long_row * doublings)
    computing = joined(in_tiles, of.flops / on.sustained, shape.power_overlap)
    return joined(computing, of.bytes / (on.bandwidth * shape.reading), shape.overlap)


def joined(one: Floats, other: Floats, exponent: float) -> Floats:
    """Return the norm of two times: their sum with exponent 1, the longer with a large one."""
    longer = np.maximum(np.maximum(one, other), 1e-12)
    found: Floats = longer * ((one / longer) ** exponent + (other / longer) ** exponent) ** (1 / exponent)
    return found


def _in_tiles(of: Products, shape: ProductShape, on: DeviceRates, tile: tuple[float, float]) -> Floats:
    """Return seconds at the peak with tiles of one shape."""
    rows, columns = tile
    tiles = of.batch * np.ceil(of.rows / rows) * np.ceil(of.columns / columns)
    parts = np.clip(on.processors / tiles, 1, np.maximum(1, of.inner / shape.least_inner))
    waves = tiles * parts / on.processors
    idle = np.where(waves < 1, 1 / waves, 1 + shape.rounding * (np.ceil(waves) / waves - 1))
    length = of.inner + shape.head * parts / np.maximum(1, waves)
    found: Floats = 2 * tiles * rows * columns * length / on.peak * idle
    return found


def _misaligned(of: Products) -> Floats:
    """Return the share of the rows of memory that do not begin at a multiple of four elements."""
    found: Floats = ((of.inner % _ALIGNED != 0) + 2.0 * (of.columns % _ALIGNED != 0)) / 3
    return found
