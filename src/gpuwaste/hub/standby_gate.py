"""StandbyGate: what a hub that stands by answers: reads of what is stored; for all else it sends on to the next hub.

A route that is not named here is refused: what a hub keeps in memory, and what it writes, is the serving hub's.
"""

import asyncio
import re
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuwaste.hub.exchange import json_response
from gpuwaste.hub.gate import RETRY_AFTER_S
from gpuwaste.hub.refusal import LATER
from gpuwaste.wire.hub_role import ROLE_HEADER, STANDS_BY

ANSWERED: Final = (
    "/metrics",
    "/openapi.json",
    "/v1/events",
    "/v1/events/kinds",
    "/v1/health",
    "/v1/history",
    "/v1/jobs/[^/]+",
    "/v1/notices",
    "/v1/programs/runs",
    "/v1/report",
    "/v1/top",
    "/v1/verdicts",
    "/v1/verdicts/score",
    "/v1/views",
    "/v1/views/[^/]+",
    "/v1/views/[^/]+/compare",
)
_REFUSED: Final = {
    "error": "this hub stands by and answers only reads of stored data: ask the hub that serves (hub_url has all hosts)"
}
_CANNOT_READ: Final = {"error": "this hub stands by and cannot read the lake now: ask the hub that serves"}
_ANSWERED: Final = re.compile("|".join(ANSWERED))
_ROLE: Final = (ROLE_HEADER.lower().encode("ascii"), STANDS_BY.encode("ascii"))
_BODY_S: Final = 10.0


class StandbyGate:
    """A middleware around `app`, the application of a hub that reads the lake; None while it cannot be read."""

    def __init__(self, max_body_bytes: int, app: ASGIApp | None = None) -> None:
        self.app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; each answer has the header by which clients know that nothing was done."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], _ROLE]
            await send(message)

        app = self.app
        if app is not None and scope["method"] == "GET" and _ANSWERED.fullmatch(scope["path"]):
            await app(scope, receive, marked)
            return
        await self._pass_over(receive)
        refusal = json_response(
            _REFUSED if app is not None else _CANNOT_READ,
            LATER,
            {"Retry-After": str(RETRY_AFTER_S), "Connection": "close"},
        )
        await refusal(scope, receive, marked)

    async def _pass_over(self, receive: Receive) -> None:
        """Read a body and forget it: a sender whose connection ends before would not see the answer."""
        passed = 0
        try:
            async with asyncio.timeout(_BODY_S):
                while passed <= self._max_body_bytes:
                    message = await receive()
                    passed += len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            return
