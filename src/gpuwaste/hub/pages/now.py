"""/now within the reader's scope."""

import threading
from dataclasses import replace

from fastapi import Response
from markupsafe import Markup
from starlette.datastructures import QueryParams

from gpuwaste.act.events.event_reads import EventReads
from gpuwaste.core.scope import Scope
from gpuwaste.hub.pages.forms import in_form
from gpuwaste.hub.pages.question import page_number
from gpuwaste.ledger.charts.node_grid import node_grid
from gpuwaste.ledger.now.now_page import ROWS, now_page
from gpuwaste.ledger.now.now_reads import NowReads
from gpuwaste.ledger.now.now_types import NowDocument
from gpuwaste.ledger.reports.report_reads import MAX_ROWS
from gpuwaste.show.environment import Frame


class NowViews:
    """The page of what the cluster does now."""

    def __init__(self, now: NowReads, events: EventReads) -> None:
        self._now, self._events = now, events
        self._drawing = threading.Lock()
        self._drawn: tuple[NowDocument, Markup] | None = None

    def answer(self, scope: Scope, frame: Frame, query: QueryParams, form: str) -> Response:
        """Answer with what was taken last. Raises Refusal."""
        number = page_number(query)
        read = frame if form else replace(frame, place=self._events.last())
        document = self._now.document(scope, MAX_ROWS if form else ROWS)
        return in_form(
            form,
            lambda: now_page(document, number, read, lambda other: f"/now?page={other}#nodes", self._grid(document)),
            lambda: document,
        )

    def _grid(self, document: NowDocument) -> Markup:
        """Return the drawing of the nodes; that of the document that all operators get is made once."""
        with self._drawing:
            if self._drawn is None or self._drawn[0] is not document:
                self._drawn = document, node_grid(document.nodes)
            return self._drawn[1]
