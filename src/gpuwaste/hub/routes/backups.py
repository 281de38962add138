"""/v1/backup: a copy of the store while the hub runs."""

from fastapi import FastAPI, Request, Response
from starlette.responses import StreamingResponse

from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.models import BackupAnswer
from gpuwaste.hub.openapi import answers


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    backups = exchange.services.backups
    described = answers(BackupAnswer)

    @app.post("/v1/backup", responses=described)
    async def begin(request: Request) -> Response:
        """Start a backup of the store, unless one is running; for root, operators and staff."""
        return await exchange.order(request, lambda scope, _: backups.begin(scope))

    @app.get("/v1/backup", responses=described)
    async def stands(request: Request) -> Response:
        """Return the state of the backup."""
        return await exchange.document(request, backups.stands)

    @app.get("/v1/backup/file", responses={200: {"content": {"application/x-tar": {}}}})
    async def fetched(request: Request) -> Response:
        """Return the backup as a tar, once: it is complete if its last member is sums.json."""
        scope = await exchange.scope(request)
        return StreamingResponse(exchange.threads.files.parts(backups.parts(scope)), media_type="application/x-tar")
