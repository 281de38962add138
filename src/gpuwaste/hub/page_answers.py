"""How a page is answered: in the reader's scope, with the common headers, and errors as pages too."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

from fastapi import Request, Response

from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.refusal import BAD, FORBIDDEN, LATER, NOT_FOUND, TOO_MANY, UNAUTHORIZED, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.thread_pool import ThreadPool
from gpuwaste.hub.admission_control import PerUserLimit
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.sign_in.visitors import SignInNeeded, Visitors
from gpuwaste.show.environment import Frame, error_page, sign_in_page

SEE_OTHER: Final = 303
_HTML: Final = "text/html; charset=utf-8"
_UNSERVED: Final = log_event.error(
    "page-failed: cannot answer a request for a page: {error}",
    "Slurm, munge or the store did not answer. The reader gets HTTP 503. Out of Memory: raise `[hub] memory_mb`.",
)
_HEADINGS: Final = {
    NOT_FOUND: ("Not found.", ("Check the job id, or the name of the user or account.",)),
    BAD: ("This link is not valid.", ("Correct the parameter, or go back to My jobs.",)),
    FORBIDDEN: ("You may not see this page.", ("Ask an operator of this cluster.",)),
    TOO_MANY: ("Too many requests at the same time.", ("Reload this page in a second.",)),
    HTTPStatus.INTERNAL_SERVER_ERROR: ("This page failed.", ("Report it to the operators of this cluster.",)),
    LATER: ("The hub cannot answer now.", ("Reload this page in a minute.",)),
}
Build = Callable[[Scope, Frame, bytes], Response]
Body = Callable[[Request], Awaitable[bytes]]


def html(text: str, status: int = HTTPStatus.OK) -> Response:
    """Return a page with its headers."""
    return Response(text, status, media_type=_HTML)


def plain(text: str, media_type: str) -> Response:
    """Return the same view in another format; a table is saved and not shown."""
    saved = {"Content-Disposition": "attachment"} if media_type.startswith("text/csv") else None
    return Response(text, HTTPStatus.OK, saved, media_type)


def no_such_page() -> Response:
    """Return the page for an address that no page has; it is the same for each reader."""
    todo = ("Check the address, or go to My jobs.",)
    return html(error_page("Not found.", "This hub has no page at this address.", todo, Frame()), NOT_FOUND)


class Pages:
    """Answers requests for pages."""

    def __init__(self, exchange: Exchange, pool: ThreadPool, turns: PerUserLimit | None = None) -> None:
        """`pool` bounds how many pages are made at once; others wait."""
        self._exchange = exchange
        self._pool = pool
        self._turns = turns or exchange.turns

    async def answer(self, request: Request, build: Callable[[Scope, Frame], Response]) -> Response:
        """Answer with what `build` returns, made in a thread; a rejection is a page in the same layout."""
        return await self._answer(request, lambda scope, frame, _: build(scope, frame), _no_body)

    async def order(self, request: Request, do: Build) -> Response:
        """Answer a form likewise; its body is read only if its sender is signed in."""
        return await self._answer(request, do, self._exchange.body)

    async def _answer(self, request: Request, build: Build, read: Body) -> Response:
        frame = Frame()
        try:
            scope = await self._exchange.visitor(request, self._exchange.reading.get(Visitors).scope)
            frame = _frame(request, scope)
            with self._turns.taken(scope):
                body = await read(request)
                return await self._pool.run(scope.bounded_user, build, scope, frame, body)
        except SignInNeeded:
            return html(sign_in_page(), UNAUTHORIZED)
        except Refusal as refusal:
            return _refused(refusal, frame)
        except GpuwasteError as error:
            self._exchange.failures.caused(_UNSERVED, type(error).__name__, error=error)
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
    # The path is left out: the answers for what does not exist and for what the reader may not see are the same bytes.
    shown = Frame(user=frame.user, accounts=frame.accounts, session=frame.session, operator=frame.operator)
    answer = html(error_page(heading, str(refusal), todo, shown), refusal.status)
    after = refusal.extra.get("retry_after")
    if after is not None:
        answer.headers["Retry-After"] = str(after)
    return answer
