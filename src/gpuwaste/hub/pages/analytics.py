"""/analytics and /analytics/VIEW: views of the whole system, for operators."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import urlencode

from fastapi import Response
from msgspec import json
from starlette.datastructures import QueryParams

from gpuwaste.core.refusal import not_found
from gpuwaste.core.scope import Scope
from gpuwaste.hub.pages.answers import html, plain
from gpuwaste.hub.pages.question import other_question, page_number, view_form, view_question
from gpuwaste.show.charts.draw import chart_file, file_policy
from gpuwaste.show.environment import Frame
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.show.view_page import MOST_CHARTS, view_page, views_page
from gpuwaste.views.comparison_page import comparison_page, pair_files
from gpuwaste.views.view_reads import ViewQuestion, ViewReads
from gpuwaste.views.view_text import comparison_csv, view_csv

_Two = tuple[ViewQuestion, ViewQuestion]


class AnalyticsViews:
    """The pages of views; each also as .json, .csv and, its first charts, .svg, .2.svg and so on."""

    def __init__(self, views: ViewReads) -> None:
        self._views = views

    def listed(self, scope: Scope, frame: Frame) -> Response:
        """Answer with the views that there are. Raises Refusal."""
        return html(views_page(self._views.listed(scope), frame))

    def view(self, scope: Scope, frame: Frame, query: QueryParams, name: str) -> Response:
        """Answer with a view, or with two of them where the query names another one. Raises Refusal."""
        name, _, form = name.partition(".")
        now = self._views.now()
        question = view_question(query, now)
        other = other_question(query, question, now)
        if other is not None:
            return self._compared(scope, frame, query, f"{name}.{form}", (other, question))
        document = self._views.view(scope, name, question)
        if form == "json":
            return plain(json.encode(document).decode(), "application/json")
        if form == "csv":
            return plain(view_csv(document), "text/csv; charset=utf-8")
        if form:
            return _chart([partial(chart_file, chart) for chart in document.charts], form)
        return html(_page(document, question, query, frame))

    def _compared(self, scope: Scope, frame: Frame, query: QueryParams, file: str, two: _Two) -> Response:
        """Answer with a view of two windows or systems."""
        name, _, form = file.partition(".")
        document = self._views.compared(scope, name, *two)
        if form == "json":
            return plain(json.encode(document).decode(), "application/json")
        if form == "csv":
            return plain(comparison_csv(document), "text/csv; charset=utf-8")
        charts = pair_files(document)
        if form:
            return _chart(charts, form)
        before, after = _fixed(document.before, two[0]), _fixed(document.after, two[1])
        path = f"/analytics/{document.view}"
        other = {f"other_{key}": value for key, value in before.items() if key != "offset"}
        asked = urlencode(after | other)
        sides = f"{path}?{urlencode(before)}", f"{path}?{urlencode(after)}"
        form_words = view_form(query, [*document.before.clusters, *document.after.clusters])
        return html(
            comparison_page(document, replace(frame, links=_links(path, asked, len(charts))), sides, form_words)
        )


def _fixed(document: ViewDocument, question: ViewQuestion) -> dict[str, str | int]:
    """Return the parameters of a link that leads to the same figures tomorrow: its window is in UTC seconds."""
    more = {"clusters": question.clusters, "offset": question.offset}
    return {"start": document.start, "end": document.end} | {key: value for key, value in more.items() if value}


def _page(document: ViewDocument, question: ViewQuestion, query: QueryParams, frame: Frame) -> str:
    path, asked = f"/analytics/{document.view}", urlencode(_fixed(document, question))
    return view_page(
        document,
        page_number(query),
        replace(frame, links=_links(path, asked, min(MOST_CHARTS, len(document.charts)))),
        lambda other: f"{path}?{asked}&page={other}#table",
        view_form(query, document.clusters),
    )


def _links(path: str, asked: str, charts: int) -> dict[str, str]:
    """Return the links to the same figures, on a page and in other forms."""
    forms = ["json", "csv", *_chart_names(charts)]
    return {"permanent link": f"{path}?{asked}"} | {form: f"{path}.{form}?{asked}" for form in forms}


def _chart_names(charts: int) -> list[str]:
    return ["svg" if index == 0 else f"{index + 1}.svg" for index in range(charts)]


def _chart(files: Sequence[Callable[[], str]], form: str) -> Response:
    """Answer with one chart as a file. Raises Refusal 404."""
    found = dict(zip(_chart_names(len(files)), files, strict=True))
    if form not in found:
        raise not_found()
    headers = {"Content-Security-Policy": file_policy()}
    return Response(found[form](), headers=headers, media_type="image/svg+xml")
