"""GET /v1/history/snapshot: the state that the history of runs leads to."""

import os
from collections.abc import Iterator
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.responses import StreamingResponse

from gpuwaste.advice.predict.predictions import Predictions
from gpuwaste.core.refusal import FORBIDDEN, Refusal
from gpuwaste.hub.exchange import Exchange

_PART: Final = 256 * 1024


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""

    @app.get("/v1/history/snapshot", responses={200: {"content": {"application/x-tar": {}}}})
    async def snapshot(request: Request) -> Response:
        """Return the state of the job history as a tar, for an advisor that starts; for operators and advisors."""
        scope = await exchange.scope(request)
        if not (scope.everything or scope.agent):
            raise Refusal(FORBIDDEN, "the history is for operators")
        file = await exchange.threads.questions.run("", exchange.reading.get(Predictions).snapshot)
        length = file.seek(0, os.SEEK_END)
        file.seek(0)

        def parts() -> Iterator[bytes]:
            with file:
                yield from iter(lambda: file.read(_PART), b"")

        sent = exchange.threads.files.parts(parts())
        return StreamingResponse(sent, media_type="application/x-tar", headers={"Content-Length": str(length)})
