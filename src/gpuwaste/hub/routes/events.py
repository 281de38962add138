"""GET /v1/events/stream: the events as Server-Sent Events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Final

from fastapi import FastAPI, Query, Request, Response

from gpuwaste.act.events.event_service import EventReads, EventText
from gpuwaste.hub.exchange import Exchange, Number
from gpuwaste.hub.places import PlacedStream, Places

_PAGE: Final = 500
MAX_STREAMS: Final = 32  # readers that stay connected
_KEPT: Final = 8  # of these for operators and daemons
_LOOK_S: Final = 0.5
_LEAST_PAUSE_S: Final = (
    0.02  # between two pages for a reader who is behind; the time that the page took, where that is longer
)
_BEAT_S: Final = 15.0  # a comment, so that proxies keep the connection
_LONGEST_S: Final = 3600.0  # then the reader connects and authenticates again
_MAX_PLACE: Final = 18  # digits
_LAST_ID: Final = "last-event-id"
Kinds = Annotated[str, Query(max_length=1000)]


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    places = Places(MAX_STREAMS, _KEPT)

    @app.get("/v1/events/stream", responses={200: {"content": {"text/event-stream": {}}}})
    async def stream(request: Request, *, after: Number | None = None, kinds: Kinds = "") -> Response:
        """Follow the events, as Server-Sent Events: from `Last-Event-ID` or `after` on, else from now."""
        scope, pool = await exchange.scope(request), exchange.threads.streams
        events = exchange.reading.get(EventReads)
        patterns = events.wanted(kinds)
        with contextlib.ExitStack() as held:
            held.enter_context(places.taken(scope.user, bounded=bool(scope.bounded_user)))
            place = _place(request.headers.get(_LAST_ID, ""), after)
            if place is None:
                place = await pool.run(scope.bounded_user, events.last)

            async def read(at: int) -> tuple[list[EventText], int]:
                return await pool.run(scope.bounded_user, events.texts, scope, at, _PAGE, patterns)

            return PlacedStream(_followed(read, place), held.pop_all(), {"Cache-Control": "no-store"})


def _place(last: str, after: int | None) -> int | None:
    return int(last) if last.isdecimal() and last.isascii() and len(last) <= _MAX_PLACE else after


async def _followed(read: Callable[[int], Awaitable[tuple[list[EventText], int]]], place: int) -> AsyncIterator[bytes]:
    """Yield events as they arrive, and a comment where none does."""
    clock = asyncio.get_running_loop().time
    began = beat = clock()
    yield b"retry: 3000\n\n"
    while (now := clock()) - began < _LONGEST_S:
        found, following = await read(place)
        took_s = clock() - now
        for seq, kind, text in found:
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), text)
        if found or now - beat >= _BEAT_S:
            yield b":\n\n"
            beat = now
        await asyncio.sleep(_LOOK_S if following == place else max(took_s, _LEAST_PAUSE_S))
        place = following
