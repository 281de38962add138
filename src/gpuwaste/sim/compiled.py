"""numba's compiler, typed: schedulers' loops as machine code, kept beside the source or in the user's cache."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function at its first call for each signature; NUMBA_DISABLE_JIT=1 leaves it as Python."""
    try:
        found = numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # nowhere to keep it: an installed package, and a user without a home
        found = numba.njit(error_model="numpy")(function)
    return cast("Callable[P, R]", found)
