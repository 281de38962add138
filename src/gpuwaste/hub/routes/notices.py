"""/v1/notices: who is told of his waste, and the orders to do so."""

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from gpuwaste.documents.notice_types import NoticePreview, NoticeReplay, NoticeRun, NoticesDocument, NoticeWished
from gpuwaste.hub.exchange import Exchange, Name, Number
from gpuwaste.hub.notify.service import MAX_NOTICES, NoticeQuestion
from gpuwaste.hub.openapi import answers, body
from gpuwaste.hub.questions import NoticeRunQuestion, NoticeWish


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    notices = exchange.services.notices

    @app.get("/v1/notices", responses=answers(NoticesDocument))
    async def listed(
        request: Request,
        *,
        user: Name | None = None,
        start: Number | None = None,
        end: Number | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_NOTICES)] = 1000,
    ) -> Response:
        """List who was told of his waste and who was not, and why; times are UTC seconds, the last 60 days."""
        question = NoticeQuestion(user, start, end, limit)
        return await exchange.document(request, lambda scope: notices.listed(scope, question))

    @app.get("/v1/notices/preview", responses=answers(NoticePreview))
    async def preview(request: Request, user: Name | None = None) -> Response:
        """Tell what a user would read if a period ended now: the caller, or anybody for an operator."""
        return await exchange.document(request, lambda scope: notices.preview(scope, user))

    @app.get("/v1/notices/replay", responses=answers(NoticeReplay))
    async def replay(request: Request, start: Number, end: Number | None = None) -> Response:
        """Tell whom the periods between two UTC seconds would have told; for operators."""
        return await exchange.document(request, lambda scope: notices.replay(scope, start, end))

    @app.post("/v1/notices/run", responses=answers(NoticeRun), openapi_extra=body(NoticeRunQuestion))
    async def run(request: Request) -> Response:
        """Decide on the newest period now; a dry run notes nothing. For operators."""
        return await exchange.order(request, notices.run)

    @app.post("/v1/notices/wish", responses=answers(NoticeWished), openapi_extra=body(NoticeWish))
    async def wish(request: Request) -> Response:
        """Take the caller's word whether he wants digests."""
        return await exchange.order(request, notices.want)
