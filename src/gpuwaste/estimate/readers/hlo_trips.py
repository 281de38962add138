"""How often a loop of HLO runs: XLA's trip count, or that of the counter in its condition and body."""

import re
from collections.abc import Callable
from math import ceil
from typing import Final

from gpuwaste.estimate.readers.hlo_text import Computation, Instruction

_KNOWN: Final = re.compile(r'known_trip_count"?:\s?\{"?n"?:\s?"?(\d{1,12})')
_INDEX: Final = re.compile(r"index=(\d{1,9})")
_DIRECTION: Final = re.compile(r"direction=([A-Z]{2})")
_TURNED: Final = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


def trip_count(
    attributes: str, condition: Computation, body: Computation, first: Callable[[int], int | None]
) -> int | None:
    """Return how often the body runs, None where the text does not determine it.

    `first(i)` is the initial scalar in place i of the loop's tuple, if it is a constant.
    """
    known = _KNOWN.search(attributes)
    if known:
        return int(known[1])
    compared = _compared(condition)
    if compared is None:
        return None
    place, direction, limit = compared
    start, step = first(place), _step(body, place)
    if start is None or not step:
        return None
    distance = limit - start if direction in {"LT", "LE"} else start - limit
    if step < 0:
        step = -step
        if direction in {"LT", "LE"}:
            return None
    elif direction in {"GT", "GE"}:
        return None
    return max(0, ceil((distance + (1 if direction in {"LE", "GE"} else 0)) / step))


def _compared(condition: Computation) -> tuple[int, str, int] | None:
    """Return the place of the counter, how it is compared, and the constant."""
    by_name = {each.name: each for each in condition.instructions}
    root = condition.instructions[condition.root]
    direction = _DIRECTION.search(root.attributes)
    if root.opcode != "compare" or direction is None or len(root.operands) != 2:  # noqa: PLR2004 - both sides
        return None
    left, right = (by_name.get(name) for name in root.operands)
    how = direction[1]
    if how not in _TURNED:
        return None
    if constant(left) is not None:
        left, right, how = right, left, _TURNED[how]
    place, limit = _place(left), constant(right)
    return None if place is None or limit is None else (place, how, limit)


def _step(body: Computation, place: int) -> int | None:
    """Return the amount by which the body changes the counter."""
    by_name = {each.name: each for each in body.instructions}
    root = body.instructions[body.root]
    if root.opcode != "tuple" or place >= len(root.operands):
        return None
    moved = by_name.get(root.operands[place])
    if moved is None or moved.opcode not in {"add", "subtract"} or len(moved.operands) != 2:  # noqa: PLR2004 - same
        return None
    left, right = (by_name.get(name) for name in moved.operands)
    if moved.opcode == "add" and constant(left) is not None:
        left, right = right, left
    by = constant(right)
    if _place(left) != place or by is None:
        return None
    return by if moved.opcode == "add" else -by


def _place(instruction: Instruction | None) -> int | None:
    if instruction is None or instruction.opcode != "get-tuple-element":
        return None
    found = _INDEX.search(instruction.attributes)
    return int(found[1]) if found else None


def constant(instruction: Instruction | None) -> int | None:
    """Return the value of an instruction that is an integer constant, None for any other."""
    if instruction is None or instruction.opcode != "constant" or not instruction.operands:
        return None
    text = instruction.operands[0].strip()
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None
