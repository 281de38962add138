"""An lru_cache that keeps short texts alone: users choose names, and thousands of long ones would be many megabytes."""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Final, TypeVar

LONGEST: Final = 256  # characters of a text that is kept
_T = TypeVar("_T")


def short_cache(maxsize: int) -> Callable[[Callable[..., _T]], Callable[..., _T]]:
    """Return a decorator for a function of texts and numbers, given by place."""

    def decorate(function: Callable[..., _T]) -> Callable[..., _T]:
        kept = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def call(*values: Hashable) -> _T:
            for value in values:
                if isinstance(value, str) and len(value) > LONGEST:
                    return function(*values)
            return kept(*values)

        return call

    return decorate
