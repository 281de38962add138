"""/now/changes and /jobs/ID/changes: Server-Sent Events by which a page that is looked at knows when to refresh."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.pages.answers import HEADERS
from gpuwaste.hub.pages.feed import Follower, PageFeed
from gpuwaste.hub.refusal import FORBIDDEN, LATER, Refusal
from gpuwaste.hub.roles import Scope
from gpuwaste.hub.sign_in.visitors import SignInNeeded, Visitors

_BEAT_S: Final = 5.0  # so often the session is looked at, and proxies see that the connection is used
_QUIET_S: Final = 2.0  # between two refreshes
_LONGEST_S: Final = 600.0  # then the browser connects again
NOW_S: Final = 60.0  # /now shows counts of all jobs: it is refreshed so often whatever its reader may see
JOB_S: Final = 300.0
_CHANGED: Final = b"event: changed\ndata: \n\n"
_PLACE: Final = re.compile("[0-9]{1,18}")
_OVER: Final = b"event: over\ndata: \n\n"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a page is refreshed without news, seconds, and what is waited for before it is refreshed."""

    every_s: float
    ready: Callable[[], Awaitable[None]]


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    services = exchange.services
    visitors, feed = services.visitors, PageFeed(services.events)

    async def renewed() -> None:
        await asyncio.sleep(services.now.due_s())
        await run_in_threadpool(services.now.renew)

    @app.get("/now/changes", include_in_schema=False)
    async def now_changes(request: Request) -> Response:
        return await _answer(request, visitors, feed, lambda _: None, Pace(NOW_S, renewed))

    @app.get("/jobs/{job_id}/changes", include_in_schema=False)
    async def job_changes(request: Request, job_id: str) -> Response:
        def jobs(scope: Scope) -> frozenset[int]:
            return frozenset(run.raw_id for run in services.reads.job(scope, job_id).runs)

        return await _answer(request, visitors, feed, jobs, Pace(JOB_S, _at_once))


async def _answer(
    request: Request,
    visitors: Visitors,
    feed: PageFeed,
    jobs: Callable[[Scope], frozenset[int] | None],
    pace: Pace,
) -> Response:
    """Answer with a stream for a reader who is signed in; what is refused has no page: nobody looks at it."""
    try:
        scope = await _reader(request, visitors)
        feed.check_room(scope.user)
        follower = Follower(scope, await run_in_threadpool(jobs, scope))
    except Refusal as refusal:
        return Response(status_code=refusal.status, headers=HEADERS)
    except GpuwasteError:
        return Response(status_code=LATER, headers=HEADERS)
    headers = {**HEADERS, "X-Accel-Buffering": "no"}
    parts = _changes(request, visitors, feed.following(follower, _place(request)), follower, pace)
    return StreamingResponse(parts, media_type="text/event-stream", headers=headers)


async def _reader(request: Request, visitors: Visitors) -> Scope:
    """Return what the reader of the page may see. Raises Refusal, also for scripts of other sites."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Refusal(FORBIDDEN, "only pages of this hub follow it")
    scope = await run_in_threadpool(visitors.watching, request)
    if scope is None:
        raise SignInNeeded
    return scope


def _place(request: Request) -> int | None:
    """Return how far the stream of events was when the page was made, as the page says."""
    after = request.query_params.get("after", "")
    return int(after) if _PLACE.fullmatch(after) else None


async def _changes(
    request: Request, visitors: Visitors, following: AbstractAsyncContextManager[None], follower: Follower, pace: Pace
) -> AsyncIterator[bytes]:
    """Yield when to refresh, until the reader has signed out or the session has expired."""
    clock = asyncio.get_running_loop().time
    began = told = clock()
    async with contextlib.AsyncExitStack() as place:
        try:
            await place.enter_async_context(following)
        except (Refusal, GpuwasteError):  # other pages took the last places meanwhile, or the store refuses
            return
        yield b"retry: 5000\n\n"
        while clock() - began < _LONGEST_S:
            with_news = await _set_within(follower.news, _BEAT_S)
            try:
                scope = await run_in_threadpool(visitors.watching, request)
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
