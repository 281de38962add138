"""How long requests take: a middleware around the whole application."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuwaste.hub.methods import OTHER, method_label
from gpuwaste.hub.metrics import HubMetrics
from gpuwaste.show.resource import Reading


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
