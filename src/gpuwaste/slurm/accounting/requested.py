"""What a job requests, as sacct prints it and slurmdbd keeps it: memory in total bytes, TRES from older columns.

Up to Slurm 20.11 the amount of ReqMem is for each node (n) or processor (c). slurmdbd marks an amount for each
processor by its highest bit, of 32 or 64 bits; a sacct of another release prints the mark as a part of the amount:
2147486448Mn is 2800M for each processor. NO_VAL and INFINITE of slurm.h, of 32 and 64 bits, are no numbers.
"""

import re
from collections.abc import Mapping
from typing import Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import parse_size_b
from gpuwaste.slurm.submit.gpu_items import gpu_items

NO_NUMBERS: Final = frozenset({0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF})
_HUGE: Final = 1 << 62  # no amount of a cluster; a signed column or a float keeps NO_VAL64 as something near 2^63
_TEXT = re.compile(r"(.*?)([nc]?)", re.DOTALL)
_MARKED = re.compile(r"(\d{10}|\d{19,20})(?:\.0+)?(M?)", re.ASCII)
_MARKED_LENGTH: Final = 10
_MEBI: Final = 1 << 20
_MARKS: Final = (1 << 63, 1 << 31)
_NONE: Final = frozenset({"", "?", "Unknown", "None", "N/A", "(null)"})
_UNITS: Final = "KMGTPE"
_WHOLE = re.compile(r"[1-9]\d{0,8}", re.ASCII)


def is_no_number(value: float) -> bool:
    """Whether an amount of a database or a log means "not set" or "unlimited"."""
    return value in NO_NUMBERS or abs(value) >= _HUGE or value in {-1, -2}


def each_b(text: str, default_unit: str = "M") -> tuple[int, str]:
    """Return bytes and what they are for: "n" a node, "c" a processor, "" the entire job; 0 bytes is "not known".

    An amount that was rounded together with its mark (2.00P) is not known. Raises ParseError.
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
    """Return the total for this many nodes and processors; None where it, or the number to multiply by, is not known.

    0, "all of the node", is not known. Raises ParseError.
    """
    amount, per = each_b(text, default_unit)
    times = {"n": n_nodes, "c": cpus, "": 1}[per]
    return amount * times or None if times else None


def printed(amount_b: int) -> str:
    """Return bytes as TRES lists write them: the largest unit that loses nothing, at least K."""
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


def request_tres(values: Mapping[str, str]) -> str:
    """Return `cpu=..,mem=..,node=..,gres/gpu=..` of ReqCPUS, ReqMem, ReqNodes and ReqGRES; "" where none has a value.

    ReqMem for each processor (c) or node (n) and ReqGRES, which is for each node, are multiplied; what cannot be read
    is left out.
    """
    cpus, nodes = _count(values.get("ReqCPUS", "")), _count(values.get("ReqNodes", ""))
    parts = [f"cpu={cpus}"] if cpus else []
    memory = _memory(values.get("ReqMem", ""), cpus, nodes)
    parts += [f"mem={memory}"] if memory and cpus else []
    parts += [f"node={nodes}"] if nodes else []
    return ",".join([*parts, *_gpus(values.get("ReqGRES", ""), nodes or 1)])


def allocated_tres(values: Mapping[str, str]) -> str:
    """Return AllocTRES, with the GPUs of AllocGRES where AllocTRES has none.

    AllocGRES, of all nodes, is a column up to Slurm 20.02. AllocTRES has GPUs only where AccountingStorageTRES names
    them.
    """
    told = values.get("AllocTRES", "")
    if "gres/gpu" in told:
        return told
    return ",".join(part for part in (told, *_gpus(values.get("AllocGRES", ""), 1)) if part)


def _count(text: str) -> int:
    return int(text) if _WHOLE.fullmatch(text) else 0


def _memory(text: str, cpus: int, nodes: int) -> str:
    try:
        amount = total_b(text, nodes or 1, cpus)
    except ParseError:
        return ""
    return "" if amount is None else printed(amount)


def _gpus(text: str, nodes: int) -> list[str]:
    by_type: dict[str, int] = {}
    for kind, count in gpu_items(text):
        by_type[kind] = by_type.get(kind, 0) + count * nodes
    total = sum(by_type.values())
    typed = [f"gres/gpu:{kind}={count}" for kind, count in by_type.items() if kind and count]
    return [f"gres/gpu={total}", *typed] if total else []
