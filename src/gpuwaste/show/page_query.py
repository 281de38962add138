"""The parameters of pages, with limits: a link may be from anybody."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from gpuwaste.core.refusal import BAD, Refusal

MAX_SECONDS: Final = 2**40
_MAX_PAGE: Final = 20_000
_MAX_TEXT: Final = 256
_DIGITS: Final = 13
Name = TypeVar("Name", bound=str)


def page_number(query: Mapping[str, str]) -> int:
    """Return the requested page of a table, from 1. Raises Refusal 400."""
    return max(1, number(query, "page", _MAX_PAGE) or 1)


def node_name(query: Mapping[str, str]) -> str:
    """Return the node whose GPUs are requested, "" for all. Raises Refusal 400."""
    return text(query, "node") or ""


def choice(query: Mapping[str, str], name: str, names: Sequence[Name]) -> Name:
    """Return one of these names, the first for none. Raises Refusal 400."""
    given = query.get(name, "") or names[0]
    for one in names:
        if given == one:
            return one
    raise Refusal(BAD, f"{name}={given[:40]!r}: expected {' or '.join(names)}")


def number(query: Mapping[str, str], name: str, most: int) -> int | None:
    """Return a whole number from 0 to `most`, None for none. Raises Refusal 400."""
    given = query.get(name, "")
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= _DIGITS) or int(given) > most:
        raise Refusal(BAD, f"{name}={given[:40]!r}: expected a whole number from 0 to {most}")
    return int(given)


def text(query: Mapping[str, str], name: str) -> str | None:
    """Return a text, None for none. Raises Refusal 400."""
    given = query.get(name, "")
    if len(given) > _MAX_TEXT:
        raise Refusal(BAD, f"{name}: longer than {_MAX_TEXT} characters")
    return given or None
