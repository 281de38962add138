"""A larger or smaller machine: times a factor, or some processors (or GPUs, where it counts those) more or fewer."""

import re
from typing import Final

from gpuwaste.core.errors import UsageError
from gpuwaste.sim.whatif import Case, Change

TITLE: Final = "another size of the machine"
VALUE: Final = "F"
_FACTOR: Final = re.compile(r"\d{1,3}(?:\.\d{1,6})?", re.ASCII)
_STEP: Final = re.compile(r"[+-]\d{1,9}", re.ASCII)
_MOST: Final = 10**9


def change(case: Case, value: str) -> Change:
    """Return the same jobs on the changed machine. Raises UsageError."""
    if _STEP.fullmatch(value):
        size = case.processors + int(value)
    elif _FACTOR.fullmatch(value):
        size = round(case.processors * float(value))
    else:
        size = 0
    if not 1 <= size <= _MOST:
        raise UsageError(
            f"--what-if processors={value[:20]!r}: expected a factor such as 1.2, or a step such as +64 or -64, "
            f"that leaves a machine of 1 and more (now {case.processors})"
        )
    return Change(case.trace, size, {"size of the machine": size, "size of the base": case.processors})
