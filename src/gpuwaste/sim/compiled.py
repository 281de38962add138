"""numba's compiler, typed: schedulers' loops as machine code, cached next to the source or in the user's cache."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")
_PACKAGE: Final = Path(__file__).parents[1]
SOURCES: Final = (_PACKAGE / "sim", _PACKAGE / "plan" / "start_time")
"""Where compiled functions are, and the constants that become part of them."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function at its first call for each signature; NUMBA_DISABLE_JIT=1 leaves it as Python."""
    return _compiled(function, {})


def in_place(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that makes no arrays: it does not count references to those that it reads.

    The caller holds them. In short loops over rows the counts take most of the time.
    """
    return _compiled(function, {"_nrt": False})


def _compiled(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    try:
        found = numba.njit(cache=True, error_model="numpy", **options)(function)
        _keyed_by_all_sources(found)
    except RuntimeError:  # nowhere to cache it: an installed package, and a user without a home
        found = numba.njit(error_model="numpy", **options)(function)
    return cast("Callable[P, R]", found)


def _keyed_by_all_sources(found: Any) -> None:
    """Take a function from the cache only where no source has changed.

    numba looks at the file of the function itself, but the machine code also holds the functions that it calls.
    """
    file = getattr(getattr(found, "_cache", None), "_cache_file", None)
    if file is not None:  # with NUMBA_DISABLE_JIT=1 there is none
        file._source_stamp = stamp(SOURCES)  # noqa: SLF001 numba has no other place for it


@cache
def stamp(folders: tuple[Path, ...]) -> str:
    """Return the SHA-256 of all Python files below the folders, in hexadecimal."""
    found = hashlib.sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        found.update(b"%s\0" % path.name.encode() + path.read_bytes())
    return found.hexdigest()
