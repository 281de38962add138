"""numba's compiler, typed: schedulers' loops as machine code, cached next to the source or in the user's cache."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


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
    except RuntimeError:  # nowhere to cache it: an installed package, and a user without a home
        found = numba.njit(error_model="numpy", **options)(function)
    return cast("Callable[P, R]", found)
