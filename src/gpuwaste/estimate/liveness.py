"""How much memory buffers need at the same time."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.estimate.program import Buffer

ALIGNMENT_B: Final = 256
"""Allocators of GPU memory round each buffer up to this."""


def peak_b(buffers: Iterable[Buffer]) -> int:
    """Return the largest sum of buffers that live at the same operation, bytes."""
    change: dict[int, int] = {}
    for buffer in buffers:
        size = -(-buffer.size_b // ALIGNMENT_B) * ALIGNMENT_B
        change[buffer.first] = change.get(buffer.first, 0) + size
        change[buffer.last + 1] = change.get(buffer.last + 1, 0) - size
    peak = now = 0
    for place in sorted(change):
        now += change[place]
        peak = max(peak, now)
    return peak
