"""/now within the reader's scope."""

from fastapi import Response
from starlette.datastructures import QueryParams

from gpuwaste.hub.now import NowReads
from gpuwaste.hub.pages.forms import in_form
from gpuwaste.hub.pages.question import page_number
from gpuwaste.hub.report_reads import MAX_ROWS
from gpuwaste.hub.roles import Scope
from gpuwaste.web.environment import Frame
from gpuwaste.web.pages.now import ROWS, now_page


class NowViews:
    """The page of what the cluster does now."""

    def __init__(self, now: NowReads) -> None:
        self._now = now

    def answer(self, scope: Scope, frame: Frame, query: QueryParams, form: str) -> Response:
        """Answer with what was taken last. Raises Refusal."""
        number = page_number(query)
        document = self._now.document(scope, MAX_ROWS if form else ROWS)
        return in_form(
            form,
            lambda: now_page(document, number, frame, lambda other: f"/now?page={other}#nodes"),
            lambda: document,
        )
