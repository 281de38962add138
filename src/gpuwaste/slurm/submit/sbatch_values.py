"""Values of sbatch's options as text and whole numbers, and the error for one that sbatch refuses."""

import re
from collections.abc import Mapping
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.submit.sbatch_words import Given, refusal

_NUMBER: Final = re.compile(r" *\+?(\d{1,9})", re.ASCII)


def value(options: Mapping[str, Given], name: str) -> str:
    """Return the value of an option that is there."""
    return options[name].value or ""


def whole(options: Mapping[str, Given], name: str) -> int | None:
    """Return a number above 0, None where the option is not there. Raises ParseError or UsageError."""
    if name not in options:
        return None
    found = _NUMBER.fullmatch(value(options, name))
    if found is None or int(found[1]) == 0:
        raise bad(options[name], "a whole number above 0")
    return int(found[1])


def bad(given: Given, expected: str) -> GpuwasteError:
    """Return the error for a value."""
    return refusal(given.where, f"--{given.name}={(given.value or '')[:40]}: expected {expected}")
