"""Threads that requests share: a pool per kind of work, a limit per user, and answers made once for all who wait.

The framework's own pool of 40 threads is not used (ruff's banned-api, tests/integration/hub/test_threads.py): hanging
work there would block health and sign-in. A place of the user is reserved before a thread is taken.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from typing import Final, Generic, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread  # noqa: TID251 the only place

REPORTS_AT_ONCE: Final = 6  # others wait: 40 at once with a store of 512 MB ran out of memory
_P = ParamSpec("_P")
_T = TypeVar("_T")


class UserPlaces:
    """Limits the work of one user that is done at a time; for one event loop. A user without work costs nothing."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of_user: dict[str, tuple[asyncio.Semaphore, int]] = {}  # and the number that have a place or wait for one

    @asynccontextmanager
    async def taken(self, user: str) -> AsyncIterator[None]:
        """Wait in order for a place of this user, and hold it within the block."""
        places, known = self._of_user.get(user, (asyncio.Semaphore(self._most), 0))
        self._of_user[user] = places, known + 1
        try:
            async with places:
                yield
        finally:
            known = self._of_user[user][1] - 1
            if known:
                self._of_user[user] = places, known
            else:
                del self._of_user[user]


class ThreadPool:
    """Threads for one kind of work; for one event loop."""

    def __init__(self, threads: int, places: UserPlaces | None = None) -> None:
        """`places` may be shared by several pools."""
        self._limiter = CapacityLimiter(threads)
        self._places = places

    async def run(self, user: str, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what the work returns, done in a thread once the user has a place; the user "" is not bounded."""
        place = nullcontext() if self._places is None or not user else self._places.taken(user)
        async with place:
            return await to_thread.run_sync(lambda: work(*args, **kwargs), limiter=self._limiter)

    async def parts(self, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the parts of an iterator, each read in a thread."""
        while (part := await self.run("", next, parts, None)) is not None:
            yield part


class MadeTogether(Generic[_T]):
    """One answer for all who wait, for one event loop; a caller that arrives while one is made gets the next."""

    def __init__(self, make: Callable[[], _T], pool: ThreadPool) -> None:
        self._make = make
        self._pool = pool
        self._current: asyncio.Task[_T] | None = None
        self._next: asyncio.Task[_T] | None = None

    async def get(self) -> _T:
        """Return the answer. Raises what making it raises."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._made(self._current))
        return await asyncio.shield(self._next)

    async def _made(self, before: asyncio.Task[_T] | None) -> _T:
        if before is not None:
            await asyncio.wait([before])
        self._current, self._next = self._next, None
        return await self._pool.run("", self._make)
