"""StandbyGate: what a hub that stands by answers: reads and pages of what is stored, and batches for the lake's inbox.

All else it refers to the next hub. A route that is neither listed here nor declared as answered is rejected: what a
hub keeps in memory, and what it writes, is the serving hub's. Links and sessions of pages are in the lake's PostgreSQL,
so that all hubs see them.
"""

import asyncio
import re
from collections.abc import Callable
from functools import cache
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuwaste.core.refusal import LATER
from gpuwaste.hub.admission_control import RETRY_AFTER_S
from gpuwaste.hub.exchange import json_response
from gpuwaste.hub.middleware import SafeHeaders
from gpuwaste.hub.mount import answered_standing_by
from gpuwaste.hub.sign_in.page import page
from gpuwaste.net.hub_client import ROLE_HEADER, STANDS_BY

OWN: Final = (
    "/",
    "/enter",
    r"/enter\.js",
    "/jobs",
    r"/jobs/[^/]+/curves\.json",
    "/metrics",
    r"/openapi\.json",
    "/static/[^/]+",
    "/v1/health",
    "/v1/jobs/[^/]+/curves",
)
"""The routes that no subject declares."""
SIGN_IN: Final = ("/enter", "/sign-out", "/v1/web/link")
TAKEN: Final = ("/v1/hours", "/v1/verdicts")
_REFUSED: Final = {
    "error": "this hub is a standby and answers only reads of stored data: use the active hub (hub_url has all hosts)"
}
_NO_ROOM: Final = {"error": "this hub is a standby and accepts no batches now, see its log: use the active hub"}
_CANNOT_READ: Final = {"error": "this hub is a standby and cannot read the lake now: use the active hub"}
_NO_PAGES: Final = ("/v1/", "/metrics", "/static/")
_PAGE: Final = "<p>The active hub has this page. Open it there, or try again in a minute.</p>"
_ROLE: Final = (ROLE_HEADER.lower().encode("ascii"), STANDS_BY.encode("ascii"))
_BODY_S: Final = 10.0


class StandbyGate:
    """A middleware around `app`, the application of a hub that reads the lake; None while it cannot be read.

    `takes` returns whether batches can be put into the inbox.
    """

    def __init__(
        self, max_body_bytes: int, app: ASGIApp | None = None, takes: Callable[[], bool] = lambda: False
    ) -> None:
        self.app = app
        self.takes = takes
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; each answer except a batch's has the header that states that nothing was done.

        A batch that was admitted is answered as by the hub that serves: after a 503 it is unknown whether it is stored.
        """

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], _ROLE]
            await send(message)

        app, method, path = self.app, scope["method"], scope["path"]
        read = method == "GET" and _answered().fullmatch(path) is not None
        if app is not None and (read or (method == "POST" and path in SIGN_IN)):
            await app(scope, receive, marked)
            return
        batch = method == "POST" and path in TAKEN
        if app is not None and batch and self.takes():
            await app(scope, receive, send)
            return
        await self._pass_over(receive)
        words = _CANNOT_READ if app is None else _NO_ROOM if batch else _REFUSED
        await SafeHeaders(_refusal(path, words))(scope, receive, marked)

    async def _pass_over(self, receive: Receive) -> None:
        """Read a body and drop it: a sender whose connection ends before would not see the answer."""
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


@cache
def _answered() -> re.Pattern[str]:
    return re.compile("|".join((*OWN, *answered_standing_by())))


def _refusal(path: str, words: dict[str, str]) -> Response:
    """Return a page where a browser requests one, else a line in JSON."""
    if path.startswith(_NO_PAGES) or path.endswith(".json"):
        answer = json_response(words, LATER)
    else:
        answer = page("This hub is a standby", _PAGE, LATER)
    answer.headers.update({"Retry-After": str(RETRY_AFTER_S), "Connection": "close"})
    return answer
