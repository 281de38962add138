"""The parameters of pages, bounded: a link may come from anybody."""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from starlette.datastructures import QueryParams

from gpuwaste.core.refusal import BAD, Refusal
from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.job_lines import LineFilter
from gpuwaste.ledger.reports.usage_page import UsageQuery, asked_of
from gpuwaste.show.view_page import NOTHING, PREVIOUS, ViewForm
from gpuwaste.views.view_reads import MAX_OFFSET_S, ViewQuestion, previous

_DAYS: Final = (7, 30, 90)
_MOST_DAYS: Final = 3660
_MAX_SECONDS: Final = 2**40
_MAX_PAGE: Final = 20_000
_MAX_TEXT: Final = 256
_DIGITS: Final = 13


def asked(query: QueryParams, path: str, now: int) -> UsageQuery:
    """Return what a page of usage is asked for at `now`, UTC seconds. Raises Refusal 400."""
    days = _number(query, "days", _DAYS[-1])
    if days is not None and days not in _DAYS:
        raise Refusal(BAD, f"days={days}: expected one of {', '.join(map(str, _DAYS))}")
    start, end = _number(query, "start", _MAX_SECONDS), _number(query, "end", _MAX_SECONDS)
    lines = LineFilter(**{name: _text(query, name) for name in ("state", "partition", "name", "finding")})
    return asked_of(path, (days, start, end), now, lines, page_number(query), cluster=_text(query, "cluster") or "")


def view_question(query: QueryParams, now: int) -> ViewQuestion:
    """Return what a page of a view is asked for at `now`, UTC seconds. Raises Refusal 400."""
    days = _number(query, "days", _MOST_DAYS)
    start, end = _number(query, "start", _MAX_SECONDS), _number(query, "end", _MAX_SECONDS)
    if days is not None:
        start, end = now - days * DAY_S, now
    return ViewQuestion(start, end, _text(query, "clusters"), _number(query, "offset", MAX_OFFSET_S) or 0)


def other_question(query: QueryParams, question: ViewQuestion, now: int) -> ViewQuestion | None:
    """Return what a view is compared with: the period before, another one, other clusters. Raises Refusal 400."""
    compare = query.get("compare", "")
    if compare not in {"", PREVIOUS, NOTHING}:
        raise Refusal(BAD, f"compare={compare[:40]!r}: expected {PREVIOUS} or {NOTHING}")
    start, end = _number(query, "other_start", _MAX_SECONDS), _number(query, "other_end", _MAX_SECONDS)
    clusters = _text(query, "other_clusters")
    if compare == PREVIOUS:
        return replace(previous(question, now), clusters=clusters or question.clusters)
    if compare == NOTHING or (start, end, clusters) == (None, None, None):
        return None
    return ViewQuestion(
        question.start if start is None else start,
        question.end if end is None else end,
        clusters or question.clusters,
        question.offset,
    )


def view_form(query: QueryParams, clusters: Collection[str]) -> ViewForm:
    """Return what the form of a view shows; `clusters` are those of the answer. Raises Refusal 400."""
    days = _number(query, "days", _MOST_DAYS)
    names = ("start", "end", "other_start", "other_end", "offset")
    kept = {name: value for name in names if (value := _number(query, name, _MAX_SECONDS)) is not None}
    own, other = _text(query, "clusters") or "", _text(query, "other_clusters") or ""
    return ViewForm(
        days=days or (None if {"start", "end"} & kept.keys() else ViewForm().days),
        compare=query.get("compare", ""),
        linked=bool({"other_start", "other_end"} & kept.keys()),
        clusters=own,
        other_clusters=other,
        several=bool(own or other or len(set(clusters)) > 1),
        kept=kept,
    )


def page_number(query: QueryParams) -> int:
    """Return the page of a table that is asked for, from 1. Raises Refusal 400."""
    return max(1, _number(query, "page", _MAX_PAGE) or 1)


def node_name(query: QueryParams) -> str:
    """Return the node whose GPUs are asked for, "" for all. Raises Refusal 400."""
    return _text(query, "node") or ""


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
