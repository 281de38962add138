"""ViewFacts: numbers with their unit, their text and, where days give one, their interval."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gpuwaste.core.bootstrap import BootstrapSample, interval
from gpuwaste.core.text import harmless
from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S, say_hours, say_number
from gpuwaste.show.view_document import Fact

_LONGEST_NAME: Final = 64
_PERCENT: Final = 100
_SMALL: Final = 10


def duration_text(seconds: float) -> str:
    """Return 45 s, 12 min, 2 h 14 min, 3 d 4 h."""
    whole = round(seconds)
    if whole < 2 * MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S - MINUTE_S // 2:
        return f"{round(whole / MINUTE_S)} min"
    minutes = round(whole / MINUTE_S)
    if whole < DAY_S:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(whole / HOUR_S)
    return f"{hours // 24} d {hours % 24} h"


def value_text(value: float | str | None, unit: str) -> str:
    """Return a value as it is printed: with its unit, GPU-hours with one decimal, shares as percent without."""
    if value is None:
        return "not known"
    if isinstance(value, str):
        return harmless(value)[:_LONGEST_NAME]
    if unit == "s":
        return duration_text(value)
    if unit == "share":
        percent = value * _PERCENT
        return f"{say_number(percent, 1 if 0 < percent < 1 else 0)} %"
    number = number_text(value, unit, 1 if abs(value) >= _SMALL else 2)
    singular = value == 1 and not unit.endswith("-hours")
    return f"{number} {unit.removesuffix('s') if singular else unit}".rstrip()


def number_text(value: float, unit: str, decimals: int = 1) -> str:
    """Return a number for a column that names the unit."""
    if unit.endswith("-hours"):
        return say_hours(value)
    return f"{value:,}" if isinstance(value, int) else say_number(value, decimals)


@dataclass(slots=True)
class ViewFacts:
    """Facts of one view as they are found, each id once, with what they can be compared by."""

    query: str
    found: list[Fact] = field(default_factory=list)
    samples: dict[str, BootstrapSample] = field(default_factory=dict)

    def add(
        self, name: str, value: float | str | None, unit: str, means: str, *, sample: BootstrapSample | None = None
    ) -> None:
        """Add a fact; `unit` is "share", "s", "GPU-hours", "jobs", "" for a name."""
        usable = sample if sample is not None and sample.blocks else None
        low, high = None, None
        if usable is not None and isinstance(value, int | float):
            low, high = interval(usable, value) or (None, None)
            self.samples[name] = usable
        kept = value_text(value, "") if isinstance(value, str) else value
        text, query = value_text(value, unit), f"analytics.{self.query}"
        self.found.append(Fact(id=name, value=kept, unit=unit, text=text, means=means, query=query, low=low, high=high))

    def share(self, name: str, part: float, whole: float, means: str, *, sample: BootstrapSample | None = None) -> None:
        """Add the share that `part` is of `whole`; not known of nothing."""
        self.add(name, part / whole if whole else None, "share", means, sample=sample)


def ratio(rows: Iterable[Mapping[str, Any]], part: str, whole: str, blocks: int) -> BootstrapSample:
    """Return the sample of sum(part) / sum(whole) from rows with a column `block`."""
    found = [[0.0, 0.0] for _ in range(blocks)]
    for row in rows:
        if 0 <= row["block"] < blocks:
            found[row["block"]][0] += row[part] or 0
            found[row["block"]][1] += row[whole] or 0
    return BootstrapSample(blocks=found)


def histogram(rows: Iterable[Sequence[int]], edges: Sequence[float], blocks: int, quantile: float) -> BootstrapSample:
    """Return the sample of a quantile from (block, bin, count)."""
    counts = [[0] * len(edges) for _ in range(blocks)]
    for block, place, count in rows:
        if 0 <= block < blocks:
            counts[block][min(max(place, 0), len(edges) - 1)] += count
    return BootstrapSample(blocks=counts, quantile=quantile, edges=edges)
