"""Views of the whole system, for operators: /v1/views, and the pages /analytics and /analytics/VIEW."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec import json

from gpuwaste.core.fields import Name, Number
from gpuwaste.core.refusal import BAD, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.units import DAY_S
from gpuwaste.show.page_query import MAX_SECONDS, number, page_number, text
from gpuwaste.show.resource import NoQuestion, Page, PageRequest, Reading, Resource
from gpuwaste.show.view_document import ComparisonDocument, ViewDocument, ViewsDocument
from gpuwaste.views.view_query import MAX_OFFSET_S, Offset, ViewQuestion, previous

if TYPE_CHECKING:
    from gpuwaste.show.view_page import ViewForm
    from gpuwaste.views.view_reads import ViewReads

_MOST_DAYS: Final = 3660
_DASHBOARD_DAYS: Final = 30


@dataclass(frozen=True, kw_only=True)
class NamedView(ViewQuestion):
    """A view by its name."""

    name: str


@dataclass(frozen=True)
class ComparedViews:
    """A view of two windows or systems, the other one first."""

    name: str
    start: Number
    end: Number
    other_start: Number
    other_end: Number
    clusters: Name | None = None
    other_clusters: Name | None = None
    offset: Offset = 0


def _views(reading: Reading) -> "ViewReads":
    from gpuwaste.views.view_reads import ViewReads

    return reading.get(ViewReads)


def listed(reading: Reading, scope: Scope, _: NoQuestion) -> ViewsDocument:
    """List the views; for operators."""
    return _views(reading).listed(scope)


def view(reading: Reading, scope: Scope, question: NamedView) -> ViewDocument:
    """Return one view; times are UTC seconds, the last 30 days by default; for operators.

    `clusters` are names separated by commas, all by default; hours of the day are `offset` seconds ahead of UTC.
    """
    return _views(reading).view(scope, question.name, question)


def compared(reading: Reading, scope: Scope, question: ComparedViews) -> ComparisonDocument:
    """Return one view of two windows or systems, the other one first, and what changed; for operators."""
    before = ViewQuestion(question.other_start, question.other_end, question.other_clusters, question.offset)
    after = ViewQuestion(question.start, question.end, question.clusters, question.offset)
    return _views(reading).compared(scope, question.name, before, after)


def _question(query: Mapping[str, str], now: int) -> ViewQuestion:
    """Return the question of a view's page at `now`, UTC seconds. Raises Refusal 400."""
    days = number(query, "days", _MOST_DAYS)
    start, end = number(query, "start", MAX_SECONDS), number(query, "end", MAX_SECONDS)
    if days is not None:
        start, end = now - days * DAY_S, now
    return ViewQuestion(start, end, text(query, "clusters"), number(query, "offset", MAX_OFFSET_S) or 0)


def _other(query: Mapping[str, str], question: ViewQuestion, now: int) -> ViewQuestion | None:
    """Return the question to compare with: the period before, another one, other clusters. Raises Refusal 400."""
    from gpuwaste.show.view_page import NOTHING, PREVIOUS

    compare = query.get("compare", "")
    if compare not in {"", PREVIOUS, NOTHING}:
        raise Refusal(BAD, f"compare={compare[:40]!r}: expected {PREVIOUS} or {NOTHING}")
    start, end = number(query, "other_start", MAX_SECONDS), number(query, "other_end", MAX_SECONDS)
    clusters = text(query, "other_clusters")
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


def _form(query: Mapping[str, str], clusters: Collection[str]) -> "ViewForm":
    """Return the values of a view's form; `clusters` are those of the answer. Raises Refusal 400."""
    from gpuwaste.show.view_page import ViewForm

    days = number(query, "days", _MOST_DAYS)
    names = ("start", "end", "other_start", "other_end", "offset")
    kept = {name: value for name in names if (value := number(query, name, MAX_SECONDS)) is not None}
    own, other = text(query, "clusters") or "", text(query, "other_clusters") or ""
    return ViewForm(
        days=days or (None if {"start", "end"} & kept.keys() else ViewForm().days),
        compare=query.get("compare", ""),
        linked=bool({"other_start", "other_end"} & kept.keys()),
        clusters=own,
        other_clusters=other,
        several=bool(own or other or len(set(clusters)) > 1),
        kept=kept,
    )


def _document(asked: PageRequest) -> ViewDocument | ComparisonDocument:
    """Return a view, or a comparison if the query names another one."""
    now = asked.reading.now()
    question = _question(asked.query, now)
    other = _other(asked.query, question, now)
    views = _views(asked.reading)
    if other is None:
        return views.view(asked.scope, asked.name, question)
    return views.compared(asked.scope, asked.name, other, question)


def _page(asked: PageRequest, document: ViewDocument | ComparisonDocument) -> str:
    from gpuwaste.show.view_page import MOST_CHARTS, view_page
    from gpuwaste.views.comparison_page import comparison_page

    path, charts = f"/analytics/{document.view}", len(_charts(document))
    clusters, offset = text(asked.query, "clusters"), number(asked.query, "offset", MAX_OFFSET_S)
    if isinstance(document, ViewDocument):
        linked = urlencode(_fixed(document, clusters, offset))
        return view_page(
            document,
            page_number(asked.query),
            replace(asked.frame, links=_links(path, linked, min(MOST_CHARTS, charts))),
            lambda other: f"{path}?{linked}&page={other}#table",
            _form(asked.query, document.clusters),
            json=f"{path}.json?{linked}",
        )
    before = _fixed(document.before, text(asked.query, "other_clusters") or clusters, offset)
    after = _fixed(document.after, clusters, offset)
    others = {f"other_{key}": value for key, value in before.items() if key != "offset"}
    return comparison_page(
        document,
        replace(asked.frame, links=_links(path, urlencode(after | others), charts)),
        (f"{path}?{urlencode(before)}", f"{path}?{urlencode(after)}"),
        _form(asked.query, [*document.before.clusters, *document.after.clusters]),
    )


def _fixed(document: ViewDocument, clusters: str | None, offset: int | None) -> dict[str, str | int]:
    """Return the parameters of a permanent link to the same figures: its window is in UTC seconds."""
    more = {"clusters": clusters, "offset": offset}
    return {"start": document.start, "end": document.end} | {key: value for key, value in more.items() if value}


def _links(path: str, asked: str, charts: int) -> dict[str, str]:
    """Return the links to the same figures, as a page and in other formats."""
    from gpuwaste.show.view_page import link_names

    files = {name: f"{path}.{ending}?{asked}" for ending, name in link_names(("csv", "json"), charts).items()}
    return {"link to this window": f"{path}?{asked}"} | files


def _charts(document: ViewDocument | ComparisonDocument) -> list[Callable[[], str]]:
    from gpuwaste.show.charts.draw import chart_file
    from gpuwaste.views.comparison_page import pair_files

    if isinstance(document, ViewDocument):
        return [partial(chart_file, chart) for chart in document.charts]
    return pair_files(document)


def _csv(document: ViewDocument | ComparisonDocument) -> str:
    from gpuwaste.show.view_text import comparison_csv, view_csv

    return view_csv(document) if isinstance(document, ViewDocument) else comparison_csv(document)


def _json(document: ViewDocument | ComparisonDocument) -> str:
    return json.encode(document).decode()


def _dashboard(asked: PageRequest) -> Sequence[ViewDocument]:
    """Return the views of the dashboard; without `charts` only if the hub has them already, else none of them."""
    days = number(asked.query, "days", _MOST_DAYS) or _DASHBOARD_DAYS
    clusters = text(asked.query, "clusters")
    return _views(asked.reading).dashboard(asked.scope, days, clusters, wait=asked.query.get("charts") == "1")


def _dashboard_page(asked: PageRequest, documents: Sequence[ViewDocument]) -> str:
    from gpuwaste.show.environment import page
    from gpuwaste.show.view_page import DAYS
    from gpuwaste.views.dashboard import dashboard_of

    days, clusters = number(asked.query, "days", _MOST_DAYS) or _DASHBOARD_DAYS, text(asked.query, "clusters")
    same = urlencode({"clusters": clusters} if clusters else {})

    def link(path: str, days: int, more: str = "") -> str:
        return f"{path}?{'&'.join(filter(None, (f'days={days}', same, more)))}"

    return page(
        "dashboard",
        asked.frame,
        board=dashboard_of(documents, lambda name: link(f"/analytics/{name}", days)) if documents else None,
        views=[
            (link(f"/analytics/{one.name}", days), one.question)
            for one in listed(asked.reading, asked.scope, NoQuestion()).views
        ],
        times=[(f"last {choice} days", "" if choice == days else link("/analytics", choice)) for choice in DAYS],
        charts=link("/analytics", days, "charts=1"),
    )


RESOURCES = (
    Resource(path="/v1/views", question=NoQuestion, document=ViewsDocument, read=listed, standby=True),
    Resource(path="/v1/views/{name}", question=NamedView, document=ViewDocument, read=view, standby=True),
    Resource(
        path="/v1/views/{name}/compare",
        question=ComparedViews,
        document=ComparisonDocument,
        read=compared,
        standby=True,
    ),
    Page(path="/analytics", document=_dashboard, html=_dashboard_page, long=True, standby=True),
    Page(
        path="/analytics/{name}",
        document=_document,
        html=_page,
        forms={".json": _json, ".csv": _csv},
        charts=_charts,
        long=True,
        standby=True,
    ),
)
