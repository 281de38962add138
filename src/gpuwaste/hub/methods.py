"""HTTP methods that the hub knows: a method is a text of the peer's choice, up to a whole head long."""

from http import HTTPMethod, HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from gpuwaste.hub.exchange import json_response

OTHER: Final = "other"
_KNOWN: Final = frozenset(method.value for method in HTTPMethod)


def method_label(method: str) -> str:
    """Return the method as a metric's label: one of HTTP's own, or `other`."""
    return method if method in _KNOWN else OTHER


class KnownMethods:
    """A middleware that answers 501 to a method that is none of HTTP's, before a route is looked for."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["method"] not in _KNOWN:
            refusal = {"error": "the request's method is not one of HTTP: use GET or POST"}
            answer = json_response(refusal, HTTPStatus.NOT_IMPLEMENTED, {"Connection": "close"})
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)
