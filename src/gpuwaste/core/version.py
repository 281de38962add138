"""The version of this distribution, as the daemons report it."""

from functools import cache
from importlib.metadata import distributions
from typing import Final

UNKNOWN: Final = "0"


@cache
def own_version() -> str:
    """Return the version that this process was started with, "0" where the code is not installed.

    While a package manager replaces the files, the directory of the previous version may exist without its file, or
    with a part of it: importlib.metadata then returns a distribution whose version is None.
    """
    return next(filter(None, [found.version for found in distributions(name="gpuwaste")]), UNKNOWN)
