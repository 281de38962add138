"""POST /v1/web/link, and /enter and /sign-out, where browsers sign in to the pages and out of them."""

from typing import Final
from urllib.parse import parse_qs

from fastapi import FastAPI, Request, Response

from gpuwaste.core.refusal import BAD, Refusal
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.models import LinkAnswer
from gpuwaste.hub.openapi import answers
from gpuwaste.hub.sign_in import page
from gpuwaste.hub.sign_in.origins import drop_cookie, set_cookie
from gpuwaste.hub.sign_in.visitors import LINK_S, SignInNeeded, Visitors
from gpuwaste.net.hub_client import LINK_PATH

_HOME: Final = "/me"
_LARGEST_FORM: Final = 4096
_MOST_FIELDS: Final = 8


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""

    def visitors() -> Visitors:
        return exchange.reading.get(Visitors)

    @app.exception_handler(SignInNeeded)
    async def sign_in_needed(_: Request, __: SignInNeeded) -> Response:
        return page.sign_in_needed()

    @app.post(LINK_PATH, responses=answers(LinkAnswer))
    async def link(request: Request) -> Response:
        """Make a link by which the caller signs in to the pages, once, within a minute."""
        return await exchange.order(request, lambda scope, _: LinkAnswer(visitors().link(scope), LINK_S))

    @app.get("/enter", include_in_schema=False)
    async def enter(request: Request) -> Response:
        return page.enter_page(signed_in=await exchange.visitor(request, visitors().user) is not None)

    @app.get("/enter.js", include_in_schema=False)
    async def script() -> Response:
        return Response(page.SCRIPT, media_type="text/javascript; charset=utf-8")

    @app.post("/enter", include_in_schema=False)
    async def entered(request: Request) -> Response:
        origin = visitors().origin(request)  # before a form of another site is read
        given = await _field(exchange, request, "link")
        session = await exchange.visitor(request, lambda _: visitors().enter(request, origin, given))
        if session is None:
            return page.bad_link()
        answer = Response(status_code=303, headers={"Location": _HOME})
        set_cookie(answer, origin, session)
        return answer

    @app.post("/sign-out", include_in_schema=False)
    async def leave(request: Request) -> Response:
        origin = visitors().origin(request)
        answer = page.signed_out(by_proxy=await exchange.visitor(request, lambda _: visitors().leave(request, origin)))
        drop_cookie(answer, origin)
        return answer


async def _field(exchange: Exchange, request: Request, name: str) -> str:
    """Return one field of a form, empty for none. Raises Refusal."""
    body = await exchange.body(request, max_bytes=_LARGEST_FORM)
    try:
        fields = parse_qs(body.decode("ascii", "replace"), max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise Refusal(BAD, "this form has too many fields: use the hub's own page") from error
    return fields.get(name, [""])[0]
