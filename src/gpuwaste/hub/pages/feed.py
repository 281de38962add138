"""PageFeed: tells pages that are looked at when something happened that their reader may see.

One task reads the stream for all of them, as long as there are any; a page is told that there is news and never what:
it fetches itself again, in its reader's scope.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.act.events.event_reads import EventReads, may_see
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.scope import Scope
from gpuwaste.hub.threads import ThreadPool
from gpuwaste.jobs.events.stored_event import StoredEvent

_LOOK_S: Final = 1.0
_AFTER_ERROR_S: Final = 15.0
_PAGE: Final = 1000


@dataclass(eq=False)
class PageFollower:
    """One page: who reads it, and the ids of the jobs that it is about, None for all that the reader may see."""

    scope: Scope
    jobs: frozenset[int] | None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def concerns(self, event: StoredEvent) -> bool:
        """Tell whether an event changes the page."""
        if self.jobs is not None and (event.run is None or event.run.job_id not in self.jobs):
            return False
        return may_see(self.scope, event)


class PageFeed:
    """For the event loop's thread only."""

    def __init__(self, events: EventReads, pool: ThreadPool) -> None:
        """`pool` reads the stream."""
        self._events = events
        self._pool = pool
        self._followers: set[PageFollower] = set()
        self._task: asyncio.Task[None] | None = None
        self._place: int | None = None

    @contextlib.asynccontextmanager
    async def following(self, follower: PageFollower, after: int | None = None) -> AsyncIterator[None]:
        """Set `news` of a page where something happens, for the length of the block; what came `after` a place too.

        Raises StoreError.
        """
        self._followers.add(follower)
        try:
            if self._place is None:
                last = await self._pool.run("", self._events.last)
                self._place = last if self._place is None else self._place
            if self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self._run())
            if after is not None and await self._missed(follower, after):
                follower.news.set()
            yield
        finally:
            self._followers.discard(follower)

    async def _missed(self, follower: PageFollower, after: int) -> bool:
        """Tell whether something came between the reading of a page and its following; more than a page is news."""
        found, _ = await self._pool.run(follower.scope.bounded_user, self._events.since, after, _PAGE)
        return len(found) >= _PAGE or any(map(follower.concerns, found))

    async def _run(self) -> None:
        """Read the stream while there are followers."""
        while self._followers and self._place is not None:
            try:
                found, self._place = await self._pool.run("", self._events.since, self._place, _PAGE)
                self._tell(found)
                await asyncio.sleep(_LOOK_S)
            except GpuwasteError:  # whoever asks the store for the page itself says so in the log
                await asyncio.sleep(_AFTER_ERROR_S)
            except Exception as error:  # noqa: BLE001 pages are read without it
                BUG.log(error, what="news for pages")
                await asyncio.sleep(_AFTER_ERROR_S)
        self._place = None

    def _tell(self, events: Sequence[StoredEvent]) -> None:
        for follower in self._followers:
            if any(map(follower.concerns, events)):
                follower.news.set()
