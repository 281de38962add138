"""The parameters of pages, bounded: a link may come from anybody."""

from typing import Final

from starlette.datastructures import QueryParams

from gpuwaste.core.units import DAY_S
from gpuwaste.hub.refusal import BAD, Refusal
from gpuwaste.hub.view_reads import MAX_OFFSET_S, ViewQuestion
from gpuwaste.waste.judged_runs import LineFilter
from gpuwaste.web.pages.usage import Asked, asked_of

_DAYS: Final = (7, 30, 90)
_MOST_DAYS: Final = 3660
_MAX_SECONDS: Final = 2**40
_MAX_PAGE: Final = 20_000
_MAX_TEXT: Final = 256
_DIGITS: Final = 13


def asked(query: QueryParams, path: str, now: int) -> Asked:
    """Return what a page of usage is asked for at `now`, UTC seconds. Raises Refusal 400."""
    days = _number(query, "days", _DAYS[-1])
    if days is not None and days not in _DAYS:
        raise Refusal(BAD, f"days={days}: expected one of {', '.join(map(str, _DAYS))}")
    start, end = _number(query, "start", _MAX_SECONDS), _number(query, "end", _MAX_SECONDS)
    lines = LineFilter(**{name: _text(query, name) for name in ("state", "partition", "name", "finding")})
    return asked_of(path, (days, start, end), now, lines, page_number(query))


def view_question(query: QueryParams, now: int) -> ViewQuestion:
    """Return what a page of a view is asked for at `now`, UTC seconds. Raises Refusal 400."""
    days = _number(query, "days", _MOST_DAYS)
    start, end = _number(query, "start", _MAX_SECONDS), _number(query, "end", _MAX_SECONDS)
    if days is not None:
        start, end = now - days * DAY_S, now
    return ViewQuestion(start, end, _text(query, "clusters"), _number(query, "offset", MAX_OFFSET_S) or 0)


def page_number(query: QueryParams) -> int:
    """Return the page of a table that is asked for, from 1. Raises Refusal 400."""
    return max(1, _number(query, "page", _MAX_PAGE) or 1)


def _number(query: QueryParams, name: str, most: int) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS) or int(text) > most:
        raise Refusal(BAD, f"{name}={text[:40]!r}: expected a whole number from 0 to {most}")
    return int(text)


def _text(query: QueryParams, name: str) -> str | None:
    text = query.get(name, "")
    if len(text) > _MAX_TEXT:
        raise Refusal(BAD, f"{name}: longer than {_MAX_TEXT} characters")
    return text or None
