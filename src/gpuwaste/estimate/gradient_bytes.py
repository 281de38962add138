"""Bytes of gradients that copies of a training program exchange in each step, as far as its file shows them."""

from collections import Counter
from dataclasses import dataclass
from math import sqrt
from typing import Final

from gpuwaste.estimate.program import Program

_COPIES: Final = 3  # Adam: weights and two moments, each of the gradients' size
_LARGE: Final = 0.01  # buffers of a smaller share of the parameters say nothing: scalars, statistics of normalization


@dataclass(frozen=True, slots=True)
class GradientBytes:
    """The bytes with their range; none for a program that does not train."""

    gradient_b: float
    low_b: float
    high_b: float
    basis: str


def gradient_bytes(program: Program) -> GradientBytes:
    """Return what one copy sends into an all-reduce.

    The torch probe writes the bytes. Other files have only all that is passed to the program: weights, optimizer
    state and batch. Gradients are from a third of that (Adam) to all of it (plain SGD); where every large size is
    there three times, a third is taken. If the file does not state that it trains, the lower end is 0.
    """
    if program.training is False:
        return GradientBytes(0.0, 0.0, 0.0, "no gradients: the program does not train")
    if program.gradient_b is not None:
        size = float(program.gradient_b)
        return GradientBytes(size, size, size, "")
    whole = float(program.parameters_b)
    low, basis = whole / _COPIES, "gradients taken as a third to all of the parameters"
    middle = low if _in_threes(program) else whole / sqrt(_COPIES)
    if program.training is None:
        low, basis = 0.0, "taken as training: the file does not state it"
    return GradientBytes(middle, low, whole, basis)


def _in_threes(program: Program) -> bool:
    """Return whether each size that matters occurs three times, as with weights and the two moments of Adam."""
    found = Counter(each.size_b for each in program.buffers if each.kind == "parameter")
    least = _LARGE * program.parameters_b
    large = [count for size, count in found.items() if size * count >= least]
    return bool(large) and all(count % _COPIES == 0 for count in large)
