"""The version of this distribution, as the daemons tell it."""

from functools import cache
from importlib.metadata import distributions
from typing import Final

UNKNOWN: Final = "0"


@cache
def own_version() -> str:
    """Return the version that this process was started with, "0" where the code runs from a copy not installed.

    While a package manager replaces the files, the directory of the version before may be there without its file, or
    with a part of it: importlib.metadata gives a distribution then whose version is None.
    """
    return next(filter(None, [found.version for found in distributions(name="gpuwaste")]), UNKNOWN)
