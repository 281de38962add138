"""Texts of a chart: their largest width, cut where there is no room, and readable numbers."""

import unicodedata
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from gpuwaste.show.chart import Series
from gpuwaste.show.charts.svg import Value, element, shown

SIZE: Final = 13
"""Pixels of an ordinary text; charts.css has the same."""

_LOOKED_AT: Final = 200
_NARROW: Final = frozenset("iIjlftr.,:;'|!()[]/\\ -·")
_BROAD: Final = frozenset("mwMWOQ@%&…#+<=>^~")
_WIDE: Final = frozenset("WF")
_POWERS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def width(text: str, size: float = SIZE) -> float:
    """Return the largest width of a text in pixels, for the widest usual font; the font itself is unknown."""
    return size * sum(_em(character) for character in text)


def fitted(text: str, room: float, size: float = SIZE) -> str:
    """Return a text cut to `room` pixels, with an ellipsis where it was cut."""
    plain = shown(text, _LOOKED_AT)
    if width(plain, size) <= room:
        return plain
    left = room - width("…", size)
    for index, character in enumerate(plain):
        left -= size * _em(character)
        if left < 0:
            return plain[:index].rstrip() + "…"
    return plain


def label(text: str, room: float, attributes: dict[str, Value], size: float = SIZE) -> Markup:
    """Return a text that fits; a text that is cut has its full version as title."""
    cut = fitted(text, room, size)
    full = shown(text)
    return element("text", attributes, *((cut,) if cut == full else (element("title", {}, full), cut)))


def lines_of(text: str, room: float, size: float, most: int = 2) -> list[str]:
    """Return a text in at most `most` lines of `room` pixels, broken at blanks; the last is cut."""
    found = [""]
    words = shown(text, _LOOKED_AT).split(" ")
    for index, word in enumerate(words):
        longer = f"{found[-1]} {word}".strip()
        if width(longer, size) <= room or not found[-1]:
            found[-1] = longer
        elif len(found) == most:
            found[-1] = f"{found[-1]} {' '.join(words[index:])}"
            break
        else:
            found.append(word)
    return [fitted(line, room, size) for line in found]


def figure(value: float) -> str:
    """Print a value with three to four figures: 0.0312, 12.3, 1,234, 12.5 M."""
    size = abs(value)
    if size >= 1e15 or 0 < size < 1e-4:  # noqa: PLR2004 outside of usual numbers
        return f"{value:.2g}"
    for power, letter in _POWERS[:-1]:
        if size >= power:
            return f"{_plain(value / power, 2)} {letter}"
    if size >= 100:  # noqa: PLR2004 three figures are enough
        return f"{value:,.0f}"
    return _plain(value, 1 if size >= 10 else 2 if size >= 0.1 else 4)  # noqa: PLR2004 the same


def tick_figure(value: float) -> str:
    """Print the round value of a tick: 0.25, 40, 1,500, 20 k."""
    size = abs(value)
    if size >= 1e15 or 0 < size < 1e-4:  # noqa: PLR2004 outside of usual numbers
        return f"{value:.2g}"
    for power, letter in _POWERS:
        if size >= (power if power > 1e3 else 1e4):  # noqa: PLR2004 1,500 is shorter than 1.5 k is clear
            return f"{_plain(value / power, 2)} {letter}"
    return f"{value:,.0f}" if size >= 1000 else _plain(value, 5)  # noqa: PLR2004 thousands have a comma


def listed(series: Sequence[Series], most: int = 6) -> str:
    """Return the names of series as words: a, b and 3 more."""
    kept = [shown(one.name, 60) for one in series[:most]]
    return ", ".join(kept) + (f" and {len(series) - most} more" if len(series) > most else "")


def _plain(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.42
    if character in _BROAD:
        return 1.0
    if character.isascii():
        return 0.78 if character.isupper() else 0.65
    return 1.1 if unicodedata.east_asian_width(character) in _WIDE else 0.9
