"""Operations in two instructions: X-start returns its operands and its results, X-done the results only."""

from typing import Final

from gpuwaste.estimate.readers.hlo_cost import role_and_kind
from gpuwaste.estimate.readers.hlo_shape import ArrayShape
from gpuwaste.estimate.readers.hlo_text import Instruction

START: Final = "-start"
PARTS: Final = (START, "-update", "-done")
"""Ends of names of such instructions."""
WHOLE: Final = -1
"""The place of all that a start returns."""
_AS_IT_IS: Final = frozenset({"all-reduce-start", "all-reduce-done", "send-done", "recv-done"})
"""Not in that form: the type of all-reduce-start is that of its result."""


def started(each: Instruction) -> Instruction | None:
    """Return what a start does, with the type of its results only; None where its type has not operands and results."""
    if (
        each.opcode in _AS_IT_IS
        or isinstance(each.type, ArrayShape)
        or len(each.type) <= max(0, result_place(each.opcode))
    ):
        return None
    known = role_and_kind(each.opcode, each.attributes)[1] != "other"
    opcode = each.opcode if known else each.opcode.removesuffix(START)
    return Instruction(each.name, opcode, each.type[result_place(each.opcode)], each.operands, each.attributes)


def result_place(opcode: str) -> int:
    """Return where in the tuple of its start the results of an operation are: after the operands, but for a copy."""
    if opcode.endswith("-update"):
        return WHOLE
    return 0 if opcode.startswith("copy-") else 1


def ends(opcode: str) -> bool:
    """Tell whether an instruction hands on what a start returned."""
    return not opcode.endswith(START) and opcode not in _AS_IT_IS
