"""Middleware around the application: known methods, headers of every answer, how long requests take.

A method is a text of the peer's choice, as long as a full head at most.
"""

import time
from http import HTTPMethod, HTTPStatus
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuwaste.hub.exchange import json_response
from gpuwaste.hub.hub_metrics import HubMetrics
from gpuwaste.show.resource import Reading

OTHER: Final = "other"
_KNOWN: Final = frozenset(method.value for method in HTTPMethod)
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def method_label(method: str) -> str:
    """Return the method as a metric's label: one of HTTP's own, or `other`."""
    return method if method in _KNOWN else OTHER


class KnownMethods:
    """A middleware that answers 501 to a method that is none of HTTP's, before routing."""

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


class SafeHeaders:
    """A middleware that adds the headers that an answer does not set itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


class Timing:
    """Notes how long each request took, by route and status."""

    def __init__(self, app: ASGIApp, reading: Reading) -> None:
        self._app = app
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            route = getattr(scope.get("route"), "path", OTHER)
            method = method_label(scope["method"]) if route != OTHER else OTHER
            self._reading.get(HubMetrics).request(method, route, status, time.monotonic() - began)
