"""What the Gaussian process compares programs by: their op mix, in blocks with a weight each.

Shares enter by their square roots, so that the distance between two mixes is Hellinger's: bounded, and a kind that
carries little time counts little. Sizes enter by their logarithms.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.program import DTYPE_BITS, KINDS
from gpuwaste.estimate.roofline import Roofline

Floats = NDArray[np.float64]
_DTYPES: Final = tuple(DTYPE_BITS)
_SMALL_FLOPS: Final = 1e7  # of one execution: below it, computing takes less than its launch
_SMALL_B: Final = 1e5
BLOCKS: Final = (
    ("time_by_kind", len(KINDS)),
    ("bytes_by_kind", len(KINDS)),
    ("executions_by_kind", len(KINDS)),
    ("time_by_dtype", len(_DTYPES)),
    ("size", 4),
    ("flops_of_one", len(KINDS)),
    ("bytes_of_one", len(KINDS)),
)
"""Each block of columns and its width, in order."""


def features_of(roofline: Roofline, work: Floats) -> Floats:
    """Return the columns of BLOCKS for each program [n, sum of widths]; `work` is that of the roofline's keys."""
    kinds = _summing(KINDS, [key.partition("/")[0] for key in roofline.keys])
    dtypes = _summing(_DTYPES, [key.partition("/")[2] for key in roofline.keys])
    time = roofline.parts(work)
    count, flops, moved = (work[:, :, part] @ kinds for part in range(3))
    totals = [part.sum(axis=1) for part in (count, flops, moved)]
    all_count, all_flops, all_moved = (np.maximum(total, 1.0) for total in totals)
    size = np.log(np.stack([all_flops, all_moved / all_count, all_flops / all_moved, all_count]))
    columns = (
        _share(time @ kinds),
        _share(moved),
        _share(count),
        _share(time @ dtypes),
        size.T,
        np.log1p(flops / np.maximum(count, 1.0) / _SMALL_FLOPS),
        np.log1p(moved / np.maximum(count, 1.0) / _SMALL_B),
    )
    found: Floats = np.concatenate(columns, axis=1)
    return found


def distances(left: Floats, right: Floats) -> Floats:
    """Return squared distances by block [blocks, n, m]."""
    found = np.empty((len(BLOCKS), len(left), len(right)))
    first = 0
    for place, (_, width) in enumerate(BLOCKS):
        a, b = left[:, first : first + width], right[:, first : first + width]
        squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None] - 2.0 * (a @ b.T)
        found[place] = np.maximum(squared, 0.0)
        first += width
    return found


def mix_overlap(left: Floats, right: Floats) -> Floats:
    """Return how far two programs spend their time in the same kinds [n, m]: 1 the same shares, 0 none in common."""
    width = BLOCKS[0][1]
    return left[:, :width] @ right[:, :width].T


def _summing(names: Sequence[str], of: Sequence[str]) -> Floats:
    """Return the matrix [k, names] that adds up columns of one name."""
    return np.array([[float(name == each) for name in names] for each in of]).reshape(len(of), len(names))


def _share(values: Floats) -> Floats:
    total = values.sum(axis=1, keepdims=True)
    found: Floats = np.sqrt(values / np.where(total > 0, total, 1.0))
    return found
