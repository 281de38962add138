"""Hostlists as Slurm prints them: `gpu[1-2,04-06]-ib,login1` to names and back."""

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from gpuwaste.core.errors import ParseError

MAX_NAMES: Final = 65_536  # Slurm's own bound on one expression (MAX_RANGE)
_MAX_TEXT: Final = 1_000_000
_MAX_PIECES: Final = 64  # brackets of one name
_PIECE = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]\s]*)\])?")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_NUMBERED = re.compile(r"(.*?)(\d{1,18})(\D*)", re.DOTALL)
_ABSENT: Final = frozenset({"", "(null)", "None assigned", "None", "N/A"})


def expand(text: str) -> list[str]:
    """Return the names in the order written, repeats kept; the words for "no node" give an empty list.

    Raises ParseError for brackets that do not close, bad ranges, and expressions of more than MAX_NAMES names.
    """
    text = text.strip()
    if text in _ABSENT:
        return []
    if len(text) > _MAX_TEXT:
        raise ParseError(f"hostlist of {len(text)} characters: longer than any that Slurm prints")
    names: list[str] = []
    for part in split_outside(text, "[", "]"):
        names.extend(_expand_one(part, text, MAX_NAMES - len(names)))
    return names


def fold(names: Iterable[str]) -> str:
    """Return one expression for the distinct names: numbers of equal width in ranges, sorted."""
    plain: list[str] = []
    numbered: dict[tuple[str, str, int], list[int]] = {}
    for name in dict.fromkeys(names):
        match = _NUMBERED.fullmatch(name)
        if match is None:
            plain.append(name)
        else:
            # Without a leading zero the width says nothing: 9 and 10 belong to one range.
            width = len(match[2]) if match[2].startswith("0") else 0
            numbered.setdefault((match[1], match[3], width), []).append(int(match[2]))
    parts = [(name, name) for name in plain]
    for (prefix, suffix, width), numbers in numbered.items():
        ranges = _ranges(sorted(numbers), width)
        single = len(numbers) == 1
        parts.append((prefix, f"{prefix}{ranges}{suffix}" if single else f"{prefix}[{ranges}]{suffix}"))
    return ",".join(text for _, text in sorted(parts))


def split_outside(text: str, opening: str, closing: str) -> list[str]:
    """Split at the commas that stand outside the brackets; empty parts are left out. Raises ParseError."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        if char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
        if depth not in {0, 1}:
            raise ParseError(f"{text[:60]!r}: {opening}{closing} do not match at character {position + 1}")
    if depth:
        raise ParseError(f"{text[:60]!r}: {closing} is missing")
    parts.append(text[start:])
    return [part for part in parts if part]


def _expand_one(part: str, whole: str, room: int) -> list[str]:
    names = [""]
    position = pieces = 0
    while position < len(part):
        match = _PIECE.match(part, position)
        if match is None or match.end() == position or pieces == _MAX_PIECES:
            raise ParseError(f"hostlist {whole[:60]!r}: cannot read {part[position : position + 40]!r}")
        numbers = [""] if match[2] is None else _numbers(match[2], whole, room)
        if len(names) * len(numbers) > room:
            raise ParseError(f"hostlist {whole[:60]!r}: more than {MAX_NAMES} names")
        names = [f"{name}{match[1]}{number}" for name in names for number in numbers]
        position = match.end()
        pieces += 1
    if len(names) > room:
        raise ParseError(f"hostlist {whole[:60]!r}: more than {MAX_NAMES} names")
    return names


def _numbers(text: str, whole: str, room: int) -> list[str]:
    found: list[str] = []
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise ParseError(f"hostlist {whole[:60]!r}: {item[:40]!r} is neither a number nor a range")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise ParseError(f"hostlist {whole[:60]!r}: the range {item!r} runs backwards")
        if high - low >= room - len(found):
            raise ParseError(f"hostlist {whole[:60]!r}: more than {MAX_NAMES} names")
        found.extend(str(number).zfill(len(match[1])) for number in range(low, high + 1))
    return found


def _ranges(numbers: list[int], width: int) -> str:
    runs = []
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        first, last = (str(number).zfill(width) for number in (run[0], run[-1]))
        runs.append(first if len(run) == 1 else f"{first}-{last}")
    return ",".join(runs)
