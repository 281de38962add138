"""Cells of a grid as a few paths: one per shade, its runs drawn as strokes of one cell's height."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup

from gpuwaste.show.charts.frame import Plot
from gpuwaste.show.charts.scale import step_of, value_words
from gpuwaste.show.charts.svg import element

_COUNTS: Final = 4
_VALUES: Final = 6
_PALEST: Final = 0.3
UNKNOWN: Final = -1
"""The shade of an unknown cell; 0 is a cell that is not drawn."""


def shades_of_counts(most: int) -> list[float]:
    """Return the least count of each shade: equal factors, since a few cells have most of the points."""
    return [
        float(count) for count in sorted({max(1, round(max(1, most) ** (index / _COUNTS))) for index in range(_COUNTS)})
    ]


def shades_of_values(most: float) -> list[float]:
    """Return the least value of each shade: equal, round steps."""
    step = step_of(most, _VALUES) if most > 0 else 1.0
    return [step * index for index in range(_VALUES) if step * index < most] or [0.0]


def opacities(shades: int) -> list[float]:
    """Return the opacity of each shade, from the palest visible one to the full colour."""
    return [round(1 - (1 - _PALEST) * index / max(1, shades - 1), 2) for index in reversed(range(shades))]


def shade_of(value: float, least: Sequence[float]) -> int:
    """Return the number of the shade of a value above 0: 1 is the palest."""
    return max(1, sum(value >= bound for bound in least))


def count_words(least: Sequence[float], shade: int) -> str:
    """Return the range of counts of a shade."""
    low = round(least[shade - 1])
    if shade == len(least):
        return f"{low:,} and more"
    high = round(least[shade]) - 1
    return f"{low:,}" if high <= low else f"{low:,} to {high:,}"


def range_words(least: Sequence[float], shade: int, most: float, unit: str) -> str:
    """Return the range of values of a shade."""
    low, high = least[shade - 1], least[shade] if shade < len(least) else most
    return f"{'above 0' if low == 0 else value_words(low, unit if unit == 's' else '')} to {value_words(high, unit)}"


def paths(shades: Sequence[int], columns: int) -> dict[int, str]:
    """Return the path of each shade, from the lowest row on.

    Coordinates are cells; a run starts relative to the end of the last one of its shade, so most moves are one digit.
    """
    parts: dict[int, list[str]] = {}
    ends: dict[int, tuple[int, int]] = {}
    for row in range(len(shades) // columns if columns else 0):
        column = 0
        for shade, run in groupby(shades[row * columns : (row + 1) * columns]):
            length = sum(1 for _ in run)
            if shade:
                before = ends.get(shade, (0, 0))
                parts.setdefault(shade, []).append(f"m{column - before[0]} {row - before[1]}h{length}")
                ends[shade] = (column + length, row)
            column += length
    return {shade: "".join(found) for shade, found in sorted(parts.items())}


def placed(plot: Plot, columns: int, rows: int, kind: str, *marks: Markup) -> Markup:
    """Return a group in which one cell is one unit, the lowest row first."""
    wide, high = plot.width / max(1, columns), plot.height / max(1, rows)
    place = f"translate({plot.left:.1f} {plot.bottom - high / 2:.2f})scale({wide:.4f} {-high:.4f})"
    return element("g", {"class": f"cells {kind}", "transform": place}, *marks)
