"""Slurm's numbers for "no number": NO_VAL and INFINITE of slurm.h, of 32 and 64 bits."""

from typing import Final

NO_NUMBERS: Final = frozenset({0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF})
_HUGE: Final = 1 << 62  # no amount of a cluster; a signed column or a float keeps NO_VAL64 as something near 2^63


def is_no_number(value: float) -> bool:
    """Whether an amount of a database or a log stands for "not set" or "unlimited"."""
    return value in NO_NUMBERS or abs(value) >= _HUGE or value in {-1, -2}
