"""Which part of a slot each series takes: one on the other from 0, up and down, or side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuwaste.show.chart import Axis
from gpuwaste.show.charts.scale import Linear, LogScale, Scale
from gpuwaste.show.charts.slots import Slot


@dataclass(frozen=True, slots=True)
class StackSegment:
    """The part of one series, from `begin` to `end` on the axis of values, in one of the lanes of its slot."""

    series: int
    begin: float
    end: float
    lane: float = 0.0
    lanes: float = 1.0


def segments(slot: Slot, *, stacked: bool) -> list[StackSegment]:
    """Return the parts of what is known."""
    found, above, below = [], 0.0, 0.0
    for index, value in enumerate(slot.values):
        if value is None or value == 0:
            continue
        if not stacked:
            found.append(StackSegment(index, 0.0, value, index / len(slot.values), 1 / len(slot.values)))
        elif value > 0:
            found.append(StackSegment(index, above, above := above + value))
        else:
            found.append(StackSegment(index, below, below := below + value))
    return found


def highest(slot: Slot, *, stacked: bool) -> float:
    """Return where the marks of a slot end: what is not known begins there."""
    return max([0.0, *(one.end for one in segments(slot, stacked=stacked))])


def value_scale(axis: Axis, slots: Sequence[Slot], *, stacked: bool) -> Scale:
    """Return a scale that has room for each stack, from 0 on."""
    ends = [*(one.end for slot in slots for one in segments(slot, stacked=stacked)), *axis.reach]
    if axis.scale == "log":
        low, high = min((end for end in ends if end > 0), default=1.0), max(ends, default=10.0)
        return LogScale(low / 2, max(high, low * 5), axis.unit, zero=True)
    if axis.unit == "%" and 0 < max(ends, default=0.0) <= 100 and min(ends) >= 0:  # noqa: PLR2004 all of it
        return Linear(0.0, 100.0 if max(ends) > 50 else Linear.round(0.0, max(ends), "").high, "%")  # noqa: PLR2004
    return Linear.round(min(0.0, *ends, 0.0), max(0.0, *ends, 0.0), axis.unit)
