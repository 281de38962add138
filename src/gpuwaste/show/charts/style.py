"""How the series of one chart are told apart: by the colour of the role, and a dash or a shade where two share it."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from gpuwaste.show.chart import Layer, Series
from gpuwaste.show.charts.frame import LegendEntry
from gpuwaste.show.charts.svg import pattern, shown

MOST: Final = 12
"""Series that one chart draws; more cannot be told apart."""

_PATTERNS: Final = {"unknown": "hatch", "suspended": "dots"}


def entries(series: Sequence[Series | Layer], key: str) -> list[LegendEntry]:
    """Return the legend's line for each series: the second of a role is `r2`, the third `r3`, up to `r4`."""
    seen: Counter[str] = Counter()
    found = []
    for one in series[:MOST]:
        seen[one.role] += 1
        kind = f"role-{one.role}" + (f" r{(seen[one.role] - 1) % 4 + 1}" if seen[one.role] > 1 else "")
        found.append(
            LegendEntry(shown(one.name), kind, pattern(key, _PATTERNS[one.role]) if one.role in _PATTERNS else "")
        )
    return found
