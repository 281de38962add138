"""/v1/notices: digests of waste, their record, preview and replay."""

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from gpuwaste.act.notify.notice_types import NoticePreview, NoticeReplay, NoticeRun, NoticesDocument, NoticeWished
from gpuwaste.act.notify.service import MAX_NOTICES, NoticeQuestion
from gpuwaste.advice.predict.predict_body import NoticeRunQuestion, NoticeWish
from gpuwaste.hub.exchange import Exchange, Name, Number
from gpuwaste.hub.openapi import answers, body


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
        """List who got a digest, who did not, and why; times are UTC seconds, the last 60 days by default."""
        question = NoticeQuestion(user, start, end, limit)
        return await exchange.document(request, lambda scope: notices.listed(scope, question))

    @app.get("/v1/notices/preview", responses=answers(NoticePreview))
    async def preview(request: Request, user: Name | None = None) -> Response:
        """Return the digest that a user would get if the period ended now: the caller's; for operators any user's."""
        return await exchange.document(request, lambda scope: notices.preview(scope, user))

    @app.get("/v1/notices/replay", responses=answers(NoticeReplay))
    async def replay(request: Request, start: Number, end: Number | None = None) -> Response:
        """Return the digests that would have been sent between two UTC seconds; for operators."""
        return await exchange.document(request, lambda scope: notices.replay(scope, start, end))

    @app.post("/v1/notices/run", responses=answers(NoticeRun), openapi_extra=body(NoticeRunQuestion))
    async def run(request: Request) -> Response:
        """Process the newest period now; a dry run records nothing. For operators."""
        return await exchange.order(request, notices.run)

    @app.post("/v1/notices/wish", responses=answers(NoticeWished), openapi_extra=body(NoticeWish))
    async def wish(request: Request) -> Response:
        """Set whether the caller wants digests."""
        return await exchange.order(request, notices.want)
