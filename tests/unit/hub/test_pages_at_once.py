"""How many pages are made at once: each takes memory of the store while it is made."""

import asyncio
import threading
from typing import Any, Final

from anyio import CapacityLimiter
from fastapi import Request, Response

from gpuwaste.hub.pages.answers import Pages
from gpuwaste.hub.roles import Scope
from gpuwaste.hub.turns import Turns

AT_ONCE: Final = 2
READERS: Final = 10


class OneOperator:
    """Visitors of whom each is an operator."""

    def scope(self, _: Request) -> Scope:
        """Return what the visitor may see."""
        return Scope("oper", everything=True)


async def no_body(_: Request) -> bytes:
    """Return nothing."""
    return b""


def test_no_more_pages_are_made_at_once_than_the_limiter_has() -> None:
    """Of ten requests two are worked on at a time, two together each time, and all are answered."""
    together, lock = threading.Barrier(AT_ONCE), threading.Lock()
    at_work, most = 0, 0

    def build(*_: Any) -> Response:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        together.wait(60)
        with lock:
            at_work -= 1
        together.wait(60)
        return Response("made")

    async def ask() -> list[Response]:
        visitors: Any = OneOperator()
        pages = Pages(visitors, Turns(), no_body, CapacityLimiter(AT_ONCE))
        requests = [Request({"type": "http", "raw_path": b"/me", "headers": []}) for _ in range(READERS)]
        return list(await asyncio.gather(*(pages.answer(request, build) for request in requests)))

    answers = asyncio.run(ask())
    assert [answer.body for answer in answers] == [b"made"] * READERS
    assert most == AT_ONCE
