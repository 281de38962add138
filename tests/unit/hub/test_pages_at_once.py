"""How many pages are made at once, and of one user: each takes memory of the store while it is made."""

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import pytest
from fastapi import Request, Response

from gpuwaste.core.scope import Scope
from gpuwaste.core.thread_pool import ThreadPool, UserPlaces
from gpuwaste.hub.admission_control import PerUserLimit
from gpuwaste.hub.page_answers import Pages

AT_ONCE: Final = 2
READERS: Final = 10


class OneReader:
    """An exchange whose requests are all of one reader."""

    def __init__(self, reader: Scope) -> None:
        self.reading = SimpleNamespace(get=lambda _: SimpleNamespace(scope=None))
        self.turns = PerUserLimit(READERS)
        self._reader = reader

    async def visitor(self, *_: Any) -> Scope:
        """Return what the visitor may see."""
        return self._reader


OPERATOR: Final = Scope("oper", everything=True)
ALICE: Final = Scope("alice")


@pytest.mark.parametrize(
    ("reader", "pool"),
    [
        (OPERATOR, lambda: ThreadPool(AT_ONCE)),
        (OPERATOR, lambda: ThreadPool(AT_ONCE, UserPlaces(1))),
        (ALICE, lambda: ThreadPool(READERS, UserPlaces(AT_ONCE))),
    ],
    ids=["threads", "an operator has every place", "a user has their places"],
)
def test_no_more_pages_are_made_at_once_than_there_are_places(reader: Scope, pool: Callable[[], ThreadPool]) -> None:
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
        exchange: Any = OneReader(reader)
        pages = Pages(exchange, pool())
        requests = [Request({"type": "http", "raw_path": b"/me", "headers": []}) for _ in range(READERS)]
        return list(await asyncio.gather(*(pages.answer(request, build) for request in requests)))

    answers = asyncio.run(ask())
    assert [answer.body for answer in answers] == [b"made"] * READERS
    assert most == AT_ONCE
