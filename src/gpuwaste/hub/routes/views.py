"""GET /v1/views: views of the whole system, for operators."""

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from gpuwaste.hub.exchange import Exchange, Name, Number
from gpuwaste.hub.openapi import answers
from gpuwaste.show.view_document import ComparisonDocument, ViewDocument, ViewsDocument
from gpuwaste.views.view_reads import MAX_OFFSET_S, ViewQuestion

Offset = Annotated[int, Query(ge=-MAX_OFFSET_S, le=MAX_OFFSET_S)]


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    views = exchange.services.views

    @app.get("/v1/views", responses=answers(ViewsDocument))
    async def listed(request: Request) -> Response:
        """List the views; for operators."""
        return await exchange.document(request, views.listed)

    @app.get("/v1/views/{name}", responses=answers(ViewDocument))
    async def view(
        request: Request,
        name: str,
        *,
        start: Number | None = None,
        end: Number | None = None,
        clusters: Name | None = None,
        offset: Offset = 0,
    ) -> Response:
        """Return one view; times are UTC seconds, the last 30 days by default; for operators.

        `clusters` are names separated by commas, all by default; hours of the day are `offset` seconds ahead of UTC.
        """
        question = ViewQuestion(start, end, clusters, offset)
        return await exchange.document(request, lambda scope: views.view(scope, name, question))

    @app.get("/v1/views/{name}/compare", responses=answers(ComparisonDocument))
    async def compared(
        request: Request,
        name: str,
        *,
        start: Number,
        end: Number,
        other_start: Number,
        other_end: Number,
        clusters: Name | None = None,
        other_clusters: Name | None = None,
        offset: Offset = 0,
    ) -> Response:
        """Return one view of two windows or systems, the other one first, and what changed; for operators."""
        before = ViewQuestion(other_start, other_end, other_clusters, offset)
        after = ViewQuestion(start, end, clusters, offset)
        return await exchange.document(request, lambda scope: views.compared(scope, name, before, after))
