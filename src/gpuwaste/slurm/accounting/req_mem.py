"""The memory that a job requests, as sacct prints ReqMem and as slurmdbd keeps mem_req, in total bytes.

Up to Slurm 20.11 the amount is for each node (n) or processor (c). slurmdbd marks an amount for each processor by its
highest bit, of 32 or 64 bits; a sacct of another release prints the mark as a part of the amount: 2147486448Mn is
2800M for each processor.
"""

import re
from typing import Final

from gpuwaste.core.units import parse_size_b
from gpuwaste.slurm.formats.no_value import NO_NUMBERS

_TEXT = re.compile(r"(.*?)([nc]?)", re.DOTALL)
_MARKED = re.compile(r"(\d{10}|\d{19,20})(?:\.0+)?(M?)", re.ASCII)
_MARKED_LENGTH: Final = 10
_MEBI: Final = 1 << 20
_MARKS: Final = (1 << 63, 1 << 31)
_NONE: Final = frozenset({"", "?", "Unknown", "None", "N/A", "(null)"})
_UNITS: Final = "KMGTPE"


def each_b(text: str, default_unit: str = "M") -> tuple[int, str]:
    """Return bytes and what they are for: "n" a node, "c" a processor, "" the whole job; 0 bytes is "not known".

    An amount with a mark that was rounded with it (2.00P) is not known. Raises ParseError.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None or match[1] in _NONE:
        return 0, ""
    marked = _MARKED.fullmatch(match[1]) if len(match[1]) >= _MARKED_LENGTH else None
    if marked and (marked[2] or default_unit) == "M":
        amount, per = _without_mark(int(marked[1]), match[2])
        return (0, per) if amount in NO_NUMBERS or amount >= _MARKS[1] else (amount * _MEBI, per)
    amount = parse_size_b(match[1], default_unit)
    return (0 if amount >= _MARKS[1] * _MEBI else amount), match[2]


def total_b(text: str, n_nodes: int | None, cpus: int | None, default_unit: str = "M") -> int | None:
    """Return the total for so many nodes and processors; None where it, or the number to multiply by, is not known.

    0, "all of the node", is not known. Raises ParseError.
    """
    amount, per = each_b(text, default_unit)
    times = {"n": n_nodes, "c": cpus, "": 1}[per]
    return amount * times or None if times else None


def printed(amount_b: int) -> str:
    """Return bytes as a TRES list has them: the largest unit that loses nothing, at least K."""
    value, unit = amount_b >> 10, 0
    while value and value % 1024 == 0 and unit < len(_UNITS) - 1:
        value, unit = value >> 10, unit + 1
    return f"{value}{_UNITS[unit]}"


def _without_mark(amount: int, per: str) -> tuple[int, str]:
    if amount in NO_NUMBERS:
        return amount, per
    for mark in _MARKS:
        if mark <= amount < 2 * mark:
            return amount - mark, "c"
    return amount, per
