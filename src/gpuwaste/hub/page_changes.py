"""PATH/changes: Server-Sent Events by which a visible page knows when to refresh.

One task reads the stream for all pages, as long as there are any; a page learns that there is news and never what: it
fetches itself again, in its reader's scope.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final

from fastapi import Request, Response

from gpuwaste.act.events.event_service import EventReads, may_see
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.refusal import FORBIDDEN, LATER, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.thread_pool import MadeTogether, ThreadPool
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.places import PlacedStream, Places
from gpuwaste.hub.sign_in.visitors import SignInNeeded, Visitors
from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.show.resource import Follow

_LOOK_S: Final = 1.0
_AFTER_ERROR_S: Final = 15.0
_PAGE: Final = 1000
IN_ALL: Final = 128
_BEAT_S: Final = 5.0  # how often the session is checked, and proxies see that the connection is used
_QUIET_S: Final = 2.0  # between two refreshes
_LONGEST_S: Final = 600.0  # then the browser connects again
_CHANGED: Final = b"event: changed\ndata: \n\n"
_PLACE: Final = re.compile("[0-9]{1,18}")
_OVER: Final = b"event: over\ndata: \n\n"


@dataclass(eq=False)
class PageFollower:
    """One page: who reads it, and the ids of the jobs that it is about, None for all that the reader may see."""

    scope: Scope
    jobs: frozenset[int] | None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def concerns(self, event: StoredEvent) -> bool:
        """Return whether an event changes the page."""
        if self.jobs is not None and (event.run is None or event.run.job_id not in self.jobs):
            return False
        return may_see(self.scope, event)


class PageFeed:
    """For the event loop's thread only."""

    def __init__(self, events: Callable[[], EventReads], pool: ThreadPool) -> None:
        """`pool` reads the stream."""
        self._events = events
        self._pool = pool
        self._followers: set[PageFollower] = set()
        self._task: asyncio.Task[None] | None = None
        self._place: int | None = None

    @contextlib.asynccontextmanager
    async def following(self, follower: PageFollower, after: int | None = None) -> AsyncIterator[None]:
        """Set `news` of a page for its events during the block, and for those `after` a place.

        Raises StoreError.
        """
        self._followers.add(follower)
        try:
            if self._place is None:
                last = await self._pool.run("", self._events().last)
                self._place = last if self._place is None else self._place
            if self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self._run())
            if after is not None and await self._missed(follower, after):
                follower.news.set()
            yield
        finally:
            self._followers.discard(follower)

    async def _missed(self, follower: PageFollower, after: int) -> bool:
        """Return whether there was news between the reading of a page and its following; _PAGE events count as news."""
        found, _ = await self._pool.run(follower.scope.bounded_user, self._events().since, after, _PAGE)
        return len(found) >= _PAGE or any(map(follower.concerns, found))

    async def _run(self) -> None:
        """Read the stream while there are followers."""
        while self._followers and self._place is not None:
            try:
                found, self._place = await self._pool.run("", self._events().since, self._place, _PAGE)
                self._tell(found)
                await asyncio.sleep(_LOOK_S)
            except GpuwasteError:  # the request of the page itself fails as well and is logged
                await asyncio.sleep(_AFTER_ERROR_S)
            except Exception as error:  # noqa: BLE001 pages are read without it
                BUG.log(error, what="news for pages")
                await asyncio.sleep(_AFTER_ERROR_S)
        self._place = None

    def _tell(self, events: Sequence[StoredEvent]) -> None:
        for follower in self._followers:
            if any(map(follower.concerns, events)):
                follower.news.set()


class PageChanges:
    """Serves the streams of all pages."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._feed = PageFeed(lambda: exchange.reading.get(EventReads), exchange.threads.streams)
        self._renewals: dict[type, MadeTogether[None]] = {}
        self._places = Places(IN_ALL)  # a page that is not visible has none

    async def answer(self, request: Request, follow: Follow, name: str) -> Response:
        """Answer with a stream for a reader who is signed in; a rejection is not a page, as nobody reads it."""
        exchange = self._exchange
        try:
            scope = await self._reader(request)
            with contextlib.ExitStack() as held, exchange.turns.taken(scope):
                held.enter_context(self._places.taken(scope.user))
                found = await exchange.threads.questions.run(
                    scope.bounded_user, follow.jobs, exchange.reading, scope, name
                )
                follower = PageFollower(scope, found)
                parts = self._changes(request, self._feed.following(follower, _place(request)), follower, follow)
                return PlacedStream(parts, held.pop_all(), {"Cache-Control": "no-store"})
        except Refusal as refusal:
            return Response(status_code=refusal.status)
        except GpuwasteError:
            return Response(status_code=LATER)

    async def _reader(self, request: Request) -> Scope:
        """Return what the reader of the page may see. Raises Refusal, also for scripts of other sites."""
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Refusal(FORBIDDEN, "only pages of this hub can follow it")
        scope = await self._exchange.visitor(request, self._exchange.reading.get(Visitors).watching)
        if scope is None:
            raise SignInNeeded
        return scope

    async def _changes(
        self, request: Request, following: AbstractAsyncContextManager[None], follower: PageFollower, follow: Follow
    ) -> AsyncIterator[bytes]:
        """Yield when to refresh, until the reader has signed out or the session has expired."""
        clock = asyncio.get_running_loop().time
        began = told = clock()
        async with contextlib.AsyncExitStack() as place:
            try:
                await place.enter_async_context(following)
            except GpuwasteError:  # the store fails, and logs it: the browser asks again
                return
            yield b"retry: 5000\n\n"
            while clock() - began < _LONGEST_S:
                with_news = await _set_within(follower.news, _BEAT_S)
                try:
                    scope = await self._exchange.visitor(request, self._exchange.reading.get(Visitors).watching)
                except GpuwasteError:  # Slurm did not answer who this is: the browser asks again
                    return
                if scope is None or scope.user != follower.scope.user:
                    yield _OVER
                    return
                follower.scope = scope
                if with_news or clock() - told >= follow.every_s:
                    try:
                        await self._renewed(follow)
                    except GpuwasteError:  # the store fails, and logs it: the browser asks again
                        return
                    yield _CHANGED
                    await asyncio.sleep(_QUIET_S)
                    told = clock()
                else:
                    yield b":\n\n"

    async def _renewed(self, follow: Follow) -> None:
        """Wait until the data of the page is renewed: once for all who wait."""
        if follow.renewing is None:
            return
        found = follow.renewing(self._exchange.reading)
        renewal = self._renewals.setdefault(type(found), MadeTogether(found.renew, self._exchange.threads.streams))
        await asyncio.sleep(found.due_s())
        await renewal.get()


def _place(request: Request) -> int | None:
    """Return how far the stream of events was when the page was made, from its request."""
    after = request.query_params.get("after", "")
    return int(after) if _PLACE.fullmatch(after) else None


async def _set_within(news: asyncio.Event, seconds: float) -> bool:
    """Wait for news; return whether there are any, and clear them."""
    try:
        await asyncio.wait_for(news.wait(), seconds)
    except TimeoutError:
        return False
    news.clear()
    return True
