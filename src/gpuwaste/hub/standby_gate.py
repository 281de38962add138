"""StandbyGate: what a hub that stands by answers: reads of what is stored, and batches for the lake's inbox.

For all else it sends on to the next hub. A route that is not named here is refused: what a hub keeps in memory, and
what it writes, is the serving hub's.
"""

import asyncio
import re
from collections.abc import Callable
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
TAKEN: Final = ("/v1/hours", "/v1/verdicts")
_REFUSED: Final = {
    "error": "this hub stands by and answers only reads of stored data: ask the hub that serves (hub_url has all hosts)"
}
_NO_ROOM: Final = {"error": "this hub stands by and takes no batches now, see its log: ask the hub that serves"}
_CANNOT_READ: Final = {"error": "this hub stands by and cannot read the lake now: ask the hub that serves"}
_ANSWERED: Final = re.compile("|".join(ANSWERED))
_ROLE: Final = (ROLE_HEADER.lower().encode("ascii"), STANDS_BY.encode("ascii"))
_BODY_S: Final = 10.0


class StandbyGate:
    """A middleware around `app`, the application of a hub that reads the lake; None while it cannot be read.

    `takes` tells whether batches can be left in the inbox.
    """

    def __init__(
        self, max_body_bytes: int, app: ASGIApp | None = None, takes: Callable[[], bool] = lambda: False
    ) -> None:
        self.app = app
        self.takes = takes
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; each answer but a batch's has the header that says that nothing was done.

        A batch that was let in is answered as by the hub that serves: of a 503 nobody knows whether it is stored.
        """

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], _ROLE]
            await send(message)

        app = self.app
        if app is not None and scope["method"] == "GET" and _ANSWERED.fullmatch(scope["path"]):
            await app(scope, receive, marked)
            return
        batch = scope["method"] == "POST" and scope["path"] in TAKEN
        if app is not None and batch and self.takes():
            await app(scope, receive, send)
            return
        await self._pass_over(receive)
        words = _NO_ROOM if batch else _REFUSED
        refusal = json_response(
            words if app is not None else _CANNOT_READ,
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
