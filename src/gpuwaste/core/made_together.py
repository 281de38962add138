"""MadeTogether: one answer for all who wait for it, so that anybody may ask as often as they like."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from gpuwaste.hub.threads import ThreadPool

_T = TypeVar("_T")


class MadeTogether(Generic[_T]):
    """For one event loop. An answer is made after it was asked for; who asks while one is made gets the next."""

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
