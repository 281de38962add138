"""Texts of other programs and of users, made safe to store, show and log."""

import re
import unicodedata
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Final, TypeVar

from gpuwaste.core.errors import MAX_WORDS

PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
"""A name given by a person: of a rule, a policy, a model, a way. No path, no option, no control character."""
LONGEST_CACHED: Final = 256
"""Most characters of a text that `short_cache` keeps."""
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHOWN: Final = frozenset("LNPS")  # letters, numbers, punctuation, symbols
_T = TypeVar("_T")


def decoded(data: bytes) -> str:
    """Return bytes as text; bytes that are not UTF-8 become escapes, so that nothing is lost."""
    return data.decode("utf-8", "backslashreplace")


def storable(text: str) -> str:
    """Return a text that can be stored anywhere: NUL, bytes not in UTF-8 and half surrogate pairs become escapes."""
    if text.isascii():
        return text.replace("\0", "\\x00")
    try:
        text = decoded(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # a surrogate written as an escape in JSON
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\0", "\\x00")


def harmless(text: str) -> str:
    """Return a text in which characters that a terminal or a line-based format may act on are escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if unicodedata.category(c) not in _UNSAFE else _escape(c) for c in text)


def masked(text: str) -> str:
    """Return a text on one line in which every character but letters, numbers, signs and blanks is a `?`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if unicodedata.category(c)[0] in _SHOWN or c == " " else "?" for c in text)


def words_of(said: object, most: int = MAX_WORDS) -> str:
    """Return an error's or another program's message on one line, without controls, cut at `most` characters."""
    text = decoded(said) if isinstance(said, bytes) else str(said)
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:most]


def short_cache(maxsize: int) -> Callable[[Callable[..., _T]], Callable[..., _T]]:
    """Return an lru_cache for a function of positional texts and numbers that does not keep long texts.

    Users choose names, and thousands of long ones would be many megabytes.
    """

    def decorate(function: Callable[..., _T]) -> Callable[..., _T]:
        kept = lru_cache(maxsize=maxsize)(function)

        @wraps(function)
        def call(*values: Hashable) -> _T:
            for value in values:
                if isinstance(value, str) and len(value) > LONGEST_CACHED:
                    return function(*values)
            return kept(*values)

        return call

    return decorate


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
