"""GET /v1/now: what the cluster does now."""

from typing import Annotated, Final

from fastapi import FastAPI, Query, Request, Response

from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.openapi import answers
from gpuwaste.ledger.now.now_types import NowDocument
from gpuwaste.ledger.reports.report_reads import MAX_ROWS

PAGE: Final = 50  # idle jobs where nobody says how many


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""

    @app.get("/v1/now", responses=answers(NowDocument))
    async def now(request: Request, limit: Annotated[int, Query(ge=0, le=MAX_ROWS)] = PAGE) -> Response:
        """Report what the cluster does now: GPUs held and idle, nodes that report nothing, the queue.

        Others than operators see counts of all, and only the jobs and nodes of their own jobs; `limit` is of idle jobs.
        """
        return await exchange.document(request, lambda scope: exchange.services.now.answer(scope, limit))
