"""Lists of numbers as Slurm writes them: hostlists (`gpu[1-2,04-06]-ib,login1`) and tasks of an array.

Slurm keeps the pending tasks of an array as a bitmap in hex (0x23A); sacct prints ranges (1,3-5,9).
"""

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from gpuwaste.core.errors import ParseError

MAX_NAMES: Final = 65_536  # Slurm's own bound on one expression (MAX_RANGE)
_MAX_TEXT: Final = 1_000_000
_MAX_PIECES: Final = 64  # brackets of one name
_LONGEST_NAME: Final = 1024
_PIECE = re.compile(r"([^\[\],\s]*)(?:\[([^\[\]\s]*)\])?")
_MAX_DIGITS: Final = 18
_RANGE = re.compile(rf"([0-9]{{1,{_MAX_DIGITS}}})(?:-([0-9]{{1,{_MAX_DIGITS}}}))?")
_NUMBERED = re.compile(rf"(.*?)([0-9]{{1,{_MAX_DIGITS}}})", re.DOTALL)
_DIGITS = re.compile(r"([0-9]{1,18})")
_BLANKS = re.compile(r"[ \t\n]")  # separate names, as a comma does
NO_NODES: Final = frozenset({"", "(null)", "None assigned", "None", "N/A"})
"""What Slurm prints where a hostlist would be and there is none."""
_HEX = re.compile(r"0x([0-9A-Fa-f]{1,1048576})")


def expand(text: str) -> list[str]:
    """Return the names in the order written, repeats kept; the texts for "no node" give an empty list.

    Raises ParseError for brackets that do not close, bad ranges, and expressions of more than MAX_NAMES names.
    """
    text = text.strip()
    if text in NO_NODES:
        return []
    if len(text) > _MAX_TEXT:
        raise ParseError(f"hostlist of {len(text)} characters: longer than any that Slurm prints")
    names: list[str] = []
    for part in split_outside(_BLANKS.sub(",", text), "[", "]"):
        names.extend(_expand_one(part, text, MAX_NAMES - len(names)))
    return names


def compressed(names: Iterable[str]) -> str:
    """Return names in their order as a hostlist that `expand` reads back; successive numbers become ranges."""
    runs: list[tuple[str, str, int, int]] = []  # what is before the number, its first digits, first and last number
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            runs.append((name, "", 0, 0))
            continue
        head, digits, number = match[1], match[2], int(match[2])
        if runs and _continues(runs[-1], head, digits):
            runs[-1] = (*runs[-1][:3], number)
        else:
            runs.append((head, digits, number, number))
    parts: list[str] = []
    for head, group in groupby(runs, lambda run: (run[0], bool(run[1]))):
        ranges = [first if low == high else f"{first}-{high:0{len(first)}d}" for _, first, low, high in group]
        if not head[1]:
            parts += [head[0]] * len(ranges)
        elif len(ranges) == 1 and "-" not in ranges[0]:
            parts.append(head[0] + ranges[0])
        else:
            parts.append(f"{head[0]}[{','.join(ranges)}]")
    return ",".join(parts)


def natural_key(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return slurmctld's sort key of a node: texts by their characters, numbers by their value."""
    pieces = (piece for piece in _DIGITS.split(name) if piece)
    return tuple((not piece.isdecimal(), int(piece) if piece.isdecimal() else 0, piece) for piece in pieces)


def _continues(run: tuple[str, str, int, int], head: str, digits: str) -> bool:
    before, first, _, last = run
    return before == head and bool(first) and digits == f"{last + 1:0{len(first)}d}"


def split_outside(text: str, opening: str, closing: str) -> list[str]:
    """Split at the commas outside the brackets; empty parts are left out. Raises ParseError."""
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
    """Return one part's names in scontrol's order: the last bracket counts fastest, then the others from the left."""
    pieces = _pieces(part, whole, room)
    names = [""]
    for index, (text, numbers) in enumerate(pieces, 1):
        if len(names[-1]) + len(text) > _LONGEST_NAME:
            raise ParseError(f"hostlist {whole[:60]!r}: a name of more than {_LONGEST_NAME} characters")
        if index < len(pieces):
            names = [f"{name}{text}{number}" for number in numbers for name in names]
        else:
            names = [f"{name}{text}{number}" for name in names for number in numbers]
    return names


def _pieces(part: str, whole: str, room: int) -> list[tuple[str, list[str]]]:
    """Return each bracket's numbers with the text before it; text after the last bracket has none."""
    pieces: list[tuple[str, list[str]]] = []
    position = 0
    while position < len(part):
        match = _PIECE.match(part, position)
        if match is None or match.end() == position or len(pieces) == _MAX_PIECES:
            raise ParseError(f"hostlist {whole[:60]!r}: cannot read {part[position : position + 40]!r}")
        numbers = [""] if match[2] is None else _numbers(match[2], whole, room)
        if len(numbers) > room:
            raise ParseError(f"hostlist {whole[:60]!r}: more than {MAX_NAMES} names")
        room //= len(numbers)
        pieces.append((match[1], numbers))
        position = match.end()
    return pieces


def _numbers(text: str, whole: str, room: int) -> list[str]:
    found: list[str] = []
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise ParseError(f"hostlist {whole[:60]!r}: {item[:40]!r} is neither a number nor a range")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise ParseError(f"hostlist {whole[:60]!r}: the range {item!r} is reversed")
        if high - low >= room - len(found):
            raise ParseError(f"hostlist {whole[:60]!r}: more than {MAX_NAMES} names")
        found.extend(str(number).zfill(len(match[1])) for number in range(low, high + 1))
    return found


def task_text(text: str) -> str:
    """Return the tasks of a hex bitmap as sacct prints them; any other text as it is."""
    match = _HEX.fullmatch(text)
    if match is None:
        return text
    bits = bin(int(match[1], 16))[:1:-1]
    ranges: list[list[int]] = []
    for task in (index for index, bit in enumerate(bits) if bit == "1"):
        if ranges and task == ranges[-1][1] + 1:
            ranges[-1][1] = task
        else:
            ranges.append([task, task])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
