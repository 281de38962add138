"""/now/changes and /jobs/ID/changes: Server-Sent Events by which a page that is looked at knows when to refresh."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from fastapi import FastAPI, Request, Response

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.refusal import FORBIDDEN, LATER, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.thread_pool import MadeTogether
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.pages.feed import PageFeed, PageFollower
from gpuwaste.hub.places import PlacedStream, Places
from gpuwaste.hub.sign_in.visitors import SignInNeeded

IN_ALL: Final = 128
_BEAT_S: Final = 5.0  # so often the session is looked at, and proxies see that the connection is used
_QUIET_S: Final = 2.0  # between two refreshes
_LONGEST_S: Final = 600.0  # then the browser connects again
NOW_S: Final = 60.0  # /now shows counts of all jobs: it is refreshed so often whatever its reader may see
JOB_S: Final = 300.0
_CHANGED: Final = b"event: changed\ndata: \n\n"
_PLACE: Final = re.compile("[0-9]{1,18}")
_OVER: Final = b"event: over\ndata: \n\n"
Jobs = Callable[[Scope], frozenset[int] | None]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a page is refreshed without news, seconds, and what is waited for before it is refreshed."""

    every_s: float
    ready: Callable[[], Awaitable[None]]


class _Streams:
    """What the streams of pages have in common."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._feed = PageFeed(exchange.services.events, exchange.threads.streams)
        self._places = Places(IN_ALL)  # a page that is not visible has none

    async def answer(self, request: Request, jobs: Jobs, pace: Pace) -> Response:
        """Answer with a stream for a reader who is signed in; what is refused has no page: nobody looks at it."""
        exchange = self._exchange
        try:
            scope = await self._reader(request)
            with contextlib.ExitStack() as held, exchange.services.turns.taken(scope):
                held.enter_context(self._places.taken(scope.user))
                found = await exchange.threads.questions.run(scope.bounded_user, jobs, scope)
                follower = PageFollower(scope, found)
                parts = self._changes(request, self._feed.following(follower, _place(request)), follower, pace)
                return PlacedStream(parts, held.pop_all(), {"Cache-Control": "no-store"})
        except Refusal as refusal:
            return Response(status_code=refusal.status)
        except GpuwasteError:
            return Response(status_code=LATER)

    async def _reader(self, request: Request) -> Scope:
        """Return what the reader of the page may see. Raises Refusal, also for scripts of other sites."""
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Refusal(FORBIDDEN, "only pages of this hub follow it")
        scope = await self._exchange.visitor(request, self._exchange.services.visitors.watching)
        if scope is None:
            raise SignInNeeded
        return scope

    async def _changes(
        self, request: Request, following: AbstractAsyncContextManager[None], follower: PageFollower, pace: Pace
    ) -> AsyncIterator[bytes]:
        """Yield when to refresh, until the reader has signed out or the session has expired."""
        clock = asyncio.get_running_loop().time
        began = told = clock()
        async with contextlib.AsyncExitStack() as place:
            try:
                await place.enter_async_context(following)
            except GpuwasteError:  # the store refuses, as its own log line says: the browser asks again
                return
            yield b"retry: 5000\n\n"
            while clock() - began < _LONGEST_S:
                with_news = await _set_within(follower.news, _BEAT_S)
                try:
                    scope = await self._exchange.visitor(request, self._exchange.services.visitors.watching)
                except GpuwasteError:  # Slurm did not say who this is: the browser asks again
                    return
                if scope is None or scope.user != follower.scope.user:
                    yield _OVER
                    return
                follower.scope = scope
                if with_news or clock() - told >= pace.every_s:
                    try:
                        await pace.ready()
                    except GpuwasteError:  # the store refuses, as its own log line says: the browser asks again
                        return
                    yield _CHANGED
                    await asyncio.sleep(_QUIET_S)
                    told = clock()
                else:
                    yield b":\n\n"


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    services, streams = exchange.services, _Streams(exchange)

    renewal = MadeTogether(lambda: services.now.renew(), exchange.threads.streams)  # noqa: PLW0108 no services there

    async def renewed() -> None:
        await asyncio.sleep(services.now.due_s())
        await renewal.get()

    @app.get("/now/changes", include_in_schema=False)
    async def now_changes(request: Request) -> Response:
        return await streams.answer(request, lambda _: None, Pace(NOW_S, renewed))

    @app.get("/jobs/{job_id}/changes", include_in_schema=False)
    async def job_changes(request: Request, job_id: str) -> Response:
        def jobs(scope: Scope) -> frozenset[int]:
            return frozenset(run.job_id for run in services.reads.runs(scope, job_id))

        return await streams.answer(request, jobs, Pace(JOB_S, _at_once))


def _place(request: Request) -> int | None:
    """Return how far the stream of events was when the page was made, as the page says."""
    after = request.query_params.get("after", "")
    return int(after) if _PLACE.fullmatch(after) else None


async def _at_once() -> None:
    pass


async def _set_within(news: asyncio.Event, seconds: float) -> bool:
    """Wait for news; return whether there are any, which are old news then."""
    try:
        await asyncio.wait_for(news.wait(), seconds)
    except TimeoutError:
        return False
    news.clear()
    return True
