"""Amounts rounded up to values that people write in a request."""

import bisect
import math
from typing import Final

from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S

_GIB: Final = 1 << 30
_GIBS: Final = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128)
_SECONDS: Final = (
    *(MINUTE_S * m for m in (5, 10, 15, 20, 30, 40, 45, 60, 90)),
    *(HOUR_S * h for h in (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24)),
)


def friendly_s(seconds: float) -> int:
    """Round up to a time that people write: 5, 10, 15 min, ..., 24 h, then half days."""
    place = bisect.bisect_left(_SECONDS, seconds)
    if place < len(_SECONDS):
        return _SECONDS[place]
    return math.ceil(seconds / (DAY_S // 2)) * (DAY_S // 2)


def friendly_gib(size_b: float) -> int:
    """Round up to a GiB value that people write."""
    gib = math.ceil(size_b / _GIB)
    return next((step for step in _GIBS if step >= gib), math.ceil(gib / 64) * 64)
