"""/analytics and /analytics/VIEW: views of the whole system, for operators."""

from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from fastapi import Response
from msgspec import json
from starlette.datastructures import QueryParams

from gpuwaste.analytics.document import ViewDocument
from gpuwaste.hub.pages.answers import HEADERS, html, plain
from gpuwaste.hub.pages.question import page_number, view_question
from gpuwaste.hub.refusal import not_found
from gpuwaste.hub.roles import Scope
from gpuwaste.hub.view_reads import ViewQuestion, ViewReads
from gpuwaste.report.view_text import view_csv
from gpuwaste.web.charts.draw import chart_file, file_policy
from gpuwaste.web.environment import Frame
from gpuwaste.web.pages.view import view_page, views_page

_MOST_CHARTS: Final = 12


class AnalyticsViews:
    """The pages of views; each also as .json, .csv and, its first charts, .svg, .2.svg and so on."""

    def __init__(self, views: ViewReads) -> None:
        self._views = views

    def listed(self, scope: Scope, frame: Frame) -> Response:
        """Answer with the views that there are. Raises Refusal."""
        return html(views_page(self._views.listed(scope), frame))

    def view(self, scope: Scope, frame: Frame, query: QueryParams, name: str) -> Response:
        """Answer with a view. Raises Refusal."""
        name, _, form = name.partition(".")
        question = view_question(query, self._views.now())
        document = self._views.view(scope, name, question)
        if form == "json":
            return plain(json.encode(document).decode(), "application/json")
        if form == "csv":
            return plain(view_csv(document), "text/csv; charset=utf-8")
        if form:
            return _chart(document, form)
        return html(_page(document, question, page_number(query), frame))


def _page(document: ViewDocument, question: ViewQuestion, number: int, frame: Frame) -> str:
    """Return the page; its links have the window in UTC seconds, so that they lead to the same figures tomorrow."""
    path = f"/analytics/{document.view}"
    more = {"clusters": question.clusters, "offset": question.offset}
    fixed = {"start": document.start, "end": document.end} | {key: value for key, value in more.items() if value}
    asked = urlencode(fixed)
    charts = ["svg", *(f"{index + 1}.svg" for index in range(1, min(_MOST_CHARTS, len(document.charts))))]
    forms = ["json", "csv", *(charts if document.charts else [])]
    links = {"permanent link": f"{path}?{asked}"} | {form: f"{path}.{form}?{asked}" for form in forms}
    return view_page(document, number, replace(frame, links=links), lambda other: f"{path}?{asked}&page={other}#table")


def _chart(document: ViewDocument, form: str) -> Response:
    """Answer with one chart as a file. Raises Refusal 404."""
    names = {"svg" if index == 0 else f"{index + 1}.svg": index for index in range(len(document.charts))}
    if form not in names:
        raise not_found()
    headers = HEADERS | {"Content-Security-Policy": file_policy()}
    return Response(chart_file(document.charts[names[form]]), headers=headers, media_type="image/svg+xml")
