"""How a page is answered: in the reader's scope, with the headers that each has, and errors as pages too."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.hub.refusal import BAD, FORBIDDEN, LATER, NOT_FOUND, TOO_MANY, UNAUTHORIZED, Refusal
from gpuwaste.hub.roles import Scope
from gpuwaste.hub.sign_in.visitors import SignInNeeded, Visitors
from gpuwaste.hub.turns import Turns
from gpuwaste.web.environment import Frame
from gpuwaste.web.pages.message import error_page, sign_in_page

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
SEE_OTHER: Final = 303
_HTML: Final = "text/html; charset=utf-8"
_UNSERVED: Final = log_event.error(
    "page-failed: cannot answer a request for a page: {error}",
    "Slurm, munge or the store did not answer. The reader was asked to retry. Out of Memory: raise `[hub] memory_mb`.",
)
_HEADINGS: Final = {
    NOT_FOUND: ("Not found.", ("Check the job id, or the name of the user or account.",)),
    BAD: ("This link is not valid.", ("Correct the parameter, or go back to My jobs.",)),
    FORBIDDEN: ("This page is not open to you.", ("Ask an operator of this cluster.",)),
    TOO_MANY: ("Too many requests at the same time.", ("Reload this page in a second.",)),
    HTTPStatus.INTERNAL_SERVER_ERROR: ("This page failed.", ("Report it to the operators of this cluster.",)),
    LATER: ("The hub cannot answer now.", ("Reload this page in a minute.",)),
}
Build = Callable[[Scope, Frame, bytes], Response]
Body = Callable[[Request], Awaitable[bytes]]


def html(text: str, status: int = HTTPStatus.OK) -> Response:
    """Return a page with its headers."""
    return Response(text, status, HEADERS, _HTML)


def plain(text: str, media_type: str) -> Response:
    """Return the same view in another format; a table is saved and not shown."""
    saved = {"Content-Disposition": "attachment"} if media_type.startswith("text/csv") else {}
    return Response(text, HTTPStatus.OK, HEADERS | saved, media_type)


class Pages:
    """Answers requests for pages."""

    def __init__(self, visitors: Visitors, turns: Turns, body: Body, limiter: CapacityLimiter | None = None) -> None:
        """`limiter` says how many pages are made at once; others wait."""
        self._visitors = visitors
        self._turns = turns
        self._body = body
        self._limiter = limiter

    async def answer(self, request: Request, build: Callable[[Scope, Frame], Response]) -> Response:
        """Answer by what `build` returns, made in a thread; what is refused is a page in the same layout."""
        return await self._answer(request, lambda scope, frame, _: build(scope, frame), _no_body)

    async def order(self, request: Request, do: Build) -> Response:
        """Answer a form likewise; its body is read of a reader who is signed in."""
        return await self._answer(request, do, self._body)

    async def _answer(self, request: Request, build: Build, read: Body) -> Response:
        frame = Frame()
        try:
            scope = await run_in_threadpool(self._visitors.scope, request)
            frame = _frame(request, scope)
            with self._turns.taken(scope):
                body = await read(request)
                return await to_thread.run_sync(build, scope, frame, body, limiter=self._limiter)
        except SignInNeeded:
            return html(sign_in_page(), UNAUTHORIZED)
        except Refusal as refusal:
            return _refused(refusal, frame)
        except GpuwasteError as error:
            _UNSERVED.log(error=error)
            return _refused(Refusal(LATER, "The store or Slurm did not answer; the hub's log says why."), frame)
        except Exception as error:  # noqa: BLE001 a defect of one page ends no other
            BUG.log(error, what="page")
            return _refused(Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "The hub's log has the traceback."), frame)


async def _no_body(_: Request) -> bytes:
    return b""


def _frame(request: Request, scope: Scope) -> Frame:
    return Frame(
        user=scope.user,
        path=request.scope["raw_path"].decode("latin-1"),
        accounts=tuple(sorted({one.account for one in scope.accounts})),
        session=bool(request.cookies),
        operator=scope.everything,
    )


def _refused(refusal: Refusal, frame: Frame) -> Response:
    heading, todo = _HEADINGS.get(refusal.status, ("This request was refused.", ()))
    # The path is left out: what is not there and what is not the reader's to see are the same bytes.
    shown = Frame(user=frame.user, accounts=frame.accounts, session=frame.session, operator=frame.operator)
    answer = html(error_page(heading, str(refusal), todo, shown), refusal.status)
    after = refusal.extra.get("retry_after")
    if after is not None:
        answer.headers["Retry-After"] = str(after)
    return answer
