"""Files that are sent as tars: GET /v1/backup/file and GET /v1/history/snapshot."""

import os
from collections.abc import Iterator
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.responses import StreamingResponse

from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.core.refusal import FORBIDDEN, Refusal
from gpuwaste.hub.backup import Backups
from gpuwaste.hub.exchange import Exchange

_PART: Final = 256 * 1024
_TAR: Final = "application/x-tar"


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""

    @app.get("/v1/backup/file", responses={200: {"content": {_TAR: {}}}})
    async def fetched(request: Request) -> Response:
        """Return the backup as a tar, once: it is complete if its last member is sums.json."""
        scope = await exchange.scope(request)
        parts = exchange.reading.get(Backups).parts(scope)
        return StreamingResponse(exchange.threads.files.parts(parts), media_type=_TAR)

    @app.get("/v1/history/snapshot", responses={200: {"content": {_TAR: {}}}})
    async def snapshot(request: Request) -> Response:
        """Return the state of the job history as a tar, for an advisor that starts; for operators and advisors."""
        scope = await exchange.scope(request)
        if not (scope.everything or scope.agent):
            raise Refusal(FORBIDDEN, "only operators may read the job history")
        file = await exchange.threads.questions.run("", exchange.reading.get(Predictions).snapshot)
        length = file.seek(0, os.SEEK_END)
        file.seek(0)

        def parts() -> Iterator[bytes]:
            with file:
                yield from iter(lambda: file.read(_PART), b"")

        sent = exchange.threads.files.parts(parts())
        return StreamingResponse(sent, media_type=_TAR, headers={"Content-Length": str(length)})
