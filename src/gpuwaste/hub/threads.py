"""Threads of requests: a pool for each kind of work, so that no kind waits for another; in it places for each user.

The framework's own pool of 40 threads is not used (ruff's banned-api, tests/integration/hub/test_threads.py): work that
hangs there would keep health and sign-in waiting. A place is reserved before a thread is taken.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread  # noqa: TID251 the one place

_P = ParamSpec("_P")
_T = TypeVar("_T")
REPORTS_AT_ONCE: Final = 6  # others wait: forty of a store of 512 MB ran out of memory
REPORTS_OF_USER: Final = 2  # a third of the places, and of the memory that all of them take
_READERS: Final = 64
_QUESTIONS: Final = 32
_QUESTIONS_OF_USER: Final = 4
_PROOFS: Final = 16
_PROOFS_OF_USER: Final = 4
_CURVES: Final = 24
_CURVES_OF_USER: Final = 2
_STREAMS: Final = 4
_FILES: Final = 4


class UserPlaces:
    """How many pieces of work of one user are done at a time; for one event loop. A user without work costs nothing."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of_user: dict[str, tuple[asyncio.Semaphore, int]] = {}  # and how many have a place or wait for one

    @asynccontextmanager
    async def taken(self, user: str) -> AsyncIterator[None]:
        """Wait for a place of this user, in turn, and hold it for the length of the block."""
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
        """`places` may be those of several pools together."""
        self._limiter = CapacityLimiter(threads)
        self._places = places

    async def run(self, user: str, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what the work returns, done in a thread once the user has a place; the user "" is not bounded."""
        place = nullcontext() if self._places is None or not user else self._places.taken(user)
        async with place:
            return await to_thread.run_sync(lambda: work(*args, **kwargs), limiter=self._limiter)

    async def parts(self, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Yield what an iterator has, each part read in a thread."""
        while (part := await self.run("", next, parts, None)) is not None:
            yield part


def _heavy() -> UserPlaces:
    return UserPlaces(REPORTS_OF_USER)


@dataclass(slots=True)
class Threads:
    """The pools of a hub."""

    heavy: UserPlaces = field(default_factory=_heavy)
    """Places of a user for reports and pages together."""
    health: ThreadPool = field(default_factory=lambda: ThreadPool(1))
    metrics: ThreadPool = field(default_factory=lambda: ThreadPool(1))
    proofs: ThreadPool = field(default_factory=lambda: ThreadPool(_PROOFS, UserPlaces(_PROOFS_OF_USER)))
    """Who asks: credentials, sessions and roles. Whose a request is has to be proven: a session counts as a user."""
    questions: ThreadPool = field(default_factory=lambda: ThreadPool(_QUESTIONS, UserPlaces(_QUESTIONS_OF_USER)))
    """Documents and orders that are no reports."""
    curves: ThreadPool = field(default_factory=lambda: ThreadPool(_CURVES, UserPlaces(_CURVES_OF_USER)))
    """Samples: they wait for nodes."""
    streams: ThreadPool = field(default_factory=lambda: ThreadPool(_STREAMS, UserPlaces(1)))
    """Reading events for those who stay connected."""
    files: ThreadPool = field(default_factory=lambda: ThreadPool(_FILES))
    """Reading files that are sent."""
    reports: ThreadPool = field(init=False)
    """Reports and long documents: each takes tens of MB of the store's memory while it is made."""
    readers: ThreadPool = field(init=False)
    """Pages that are made together for all who ask: `Reads` bounds how many are made at once."""

    def __post_init__(self) -> None:
        self.reports = ThreadPool(REPORTS_AT_ONCE, self.heavy)
        self.readers = ThreadPool(_READERS, self.heavy)
