"""Quotients as slurmctld's `long double` has them, 64 bits of mantissa, as a sum of two float64.

Whether two associations tie in Fair Tree is a comparison of such quotients: in float64 some tie that slurmctld tells
apart. Products and sums without an error follow Dekker (1971) and Knuth.
"""

import math

from gpuwaste.sim.compiled import compiled

_SPLIT = 134217729.0  # 2^27 + 1
_BITS = 64


@compiled
def product_error(a: float, b: float) -> float:
    """Return a * b - fl(a * b), exactly (Dekker), for products that do not overflow."""
    t = _SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    return ((a_high * b_high - a * b) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def rounded(high: float, low: float) -> tuple[float, float]:
    """Return high + low, of which `low` is at most half a unit of `high`, rounded to 64 bits: one pair a value."""
    mantissa, exponent = math.frexp(high)
    if mantissa == 0.5 and low < 0.0:  # noqa: PLR2004 - a power of two: what is below it has a smaller exponent
        exponent -= 1
    unit = math.ldexp(1.0, exponent - _BITS)
    low = round(low / unit) * unit
    found = high + low
    return found, low - (found - high)


@compiled
def quotient(a: float, b: float, b_low: float) -> tuple[float, float]:
    """Return a / (b + b_low), rounded to 64 bits, as two parts; a above 0, b above 0."""
    first = a / b
    product = first * b
    rest = ((a - product) - product_error(first, b)) - first * b_low
    second = rest / b
    high = first + second
    return rounded(high, second - (high - first))
