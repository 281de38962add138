"""Names of jobs without what changes from run to run. Imports no numpy: the hub groups jobs by them, too."""

import re
from typing import Final

from gpuwaste.core.text import short_cache

CACHED: Final = 4096  # cached names: a few hundred kilobytes
NAME_LENGTH: Final = 64  # longer names are cut: the rest is more often a parameter list than a name
_DIGITS: Final = re.compile(r"\d+")


@short_cache(CACHED)
def normal_name(name: str) -> str:
    """Return a job's name without the parts that change from run to run: lower case, each group of digits one "#".

    A name without a letter (a program's number, a date) keeps its digits: nothing else distinguishes it.
    """
    kept = name[:NAME_LENGTH].lower()
    return _DIGITS.sub("#", kept) if any(map(str.isalpha, kept)) else kept
