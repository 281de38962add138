"""GET /v1/backup/file: a copy of the store."""

from fastapi import FastAPI, Request, Response
from starlette.responses import StreamingResponse

from gpuwaste.hub.backup import Backups
from gpuwaste.hub.exchange import Exchange


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""

    @app.get("/v1/backup/file", responses={200: {"content": {"application/x-tar": {}}}})
    async def fetched(request: Request) -> Response:
        """Return the backup as a tar, once: it is complete if its last member is sums.json."""
        scope = await exchange.scope(request)
        return StreamingResponse(
            exchange.threads.files.parts(exchange.reading.get(Backups).parts(scope)), media_type="application/x-tar"
        )
