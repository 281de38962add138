"""Texts of other programs and of users, made fit to be stored, shown and logged."""

import re
import unicodedata
from typing import Final

from gpuwaste.core.errors import MAX_WORDS

PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
"""A name that people give: of a rule, a policy, a model, a way. No path, no option, no control character."""
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def decoded(data: bytes) -> str:
    """Return bytes as text; those that are no UTF-8 become escapes, so that nothing is lost."""
    return data.decode("utf-8", "backslashreplace")


def storable(text: str) -> str:
    """Return a text that can be stored anywhere: NUL, bytes that were no UTF-8 and half surrogate pairs as escapes."""
    if text.isascii():
        return text.replace("\0", "\\x00")
    try:
        text = decoded(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # a surrogate that JSON itself names
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\0", "\\x00")


def harmless(text: str) -> str:
    """Return a text with every character that a terminal or a line-based format may act on written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if unicodedata.category(c) not in _UNSAFE else _escape(c) for c in text)


def words_of(said: object, most: int = MAX_WORDS) -> str:
    """Return an error's or another program's words in one line, without controls, cut at `most` characters."""
    text = decoded(said) if isinstance(said, bytes) else str(said)
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:most]


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
