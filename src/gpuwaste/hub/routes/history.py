"""GET /v1/history: what happened to runs, as a stream of events and as the state that they lead to."""

import os
from collections.abc import Iterator
from typing import Annotated, Final

from fastapi import FastAPI, Query, Request, Response
from starlette.responses import StreamingResponse

from gpuwaste.core.refusal import FORBIDDEN, Refusal
from gpuwaste.hub.exchange import Exchange, Number
from gpuwaste.hub.models import HistoryAnswer
from gpuwaste.hub.openapi import answers
from gpuwaste.ledger.reports.document_queries import MAX_HISTORY

_PART: Final = 256 * 1024


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""

    @app.get("/v1/history", responses=answers(HistoryAnswer))
    async def history(
        request: Request, after: Number = 0, limit: Annotated[int, Query(ge=1, le=MAX_HISTORY)] = 1000
    ) -> Response:
        """Return the events of runs after event `after`."""
        return await exchange.document(request, lambda scope: exchange.services.reads.history(scope, after, limit))

    @app.get("/v1/history/snapshot", responses={200: {"content": {"application/x-tar": {}}}})
    async def snapshot(request: Request) -> Response:
        """Return the state of the job history as a tar, for an advisor that starts; for operators and advisors."""
        scope = await exchange.scope(request)
        if not (scope.everything or scope.agent):
            raise Refusal(FORBIDDEN, "the history is for operators")
        file = await exchange.threads.questions.run("", exchange.services.predictions.snapshot)
        length = file.seek(0, os.SEEK_END)
        file.seek(0)

        def parts() -> Iterator[bytes]:
            with file:
                yield from iter(lambda: file.read(_PART), b"")

        sent = exchange.threads.files.parts(parts())
        return StreamingResponse(sent, media_type="application/x-tar", headers={"Content-Length": str(length)})
