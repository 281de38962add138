"""Admission control: limits of batches in work, and of concurrent requests of one user.

When all nodes return at once, those that cannot be served in time are rejected at once: a sender that waits until its
timeout costs the hub the full work, and sends again.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from gpuwaste.core.refusal import LATER, TOO_MANY, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.thread_pool import ThreadPool

RETRY_AFTER_S: Final = 5
_T = TypeVar("_T")
MOST: Final = 8


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """Limits of batches."""

    threads: int = 8  # batches worked on; most of them wait for one commit together
    waiting: int = 512  # complete batches that wait for their turn; those of slow senders do not count
    held_bytes: int = 64 * 1024**2  # bodies in memory
    late_s: float = 2.0  # a body that is incomplete after that gives its room to a new one
    patience_s: float = 5.0  # of a complete body for its turn; a sender gives up after ten seconds without an answer


class AdmissionControl:
    """Admits batches; for the event loop's thread only."""

    def __init__(self, limits: AdmissionLimits, put_off: Callable[[], None]) -> None:
        """`put_off` is called for each rejected batch."""
        self._limits = limits
        self._put_off = put_off
        self._turns = asyncio.Semaphore(limits.threads)
        self._threads = ThreadPool(limits.threads)  # its own: reports do not wait behind batches
        self._waiting = 0
        self._held_b = 0
        self._coming: dict[Visit, float] = {}  # incomplete bodies, and since when

    @contextmanager
    def visit(self, cut_off: Callable[[], None] = lambda: None) -> Iterator["Visit"]:
        """Admit one batch for the length of the block. Raises Refusal 503 with Retry-After.

        `cut_off` closes its connection, where it has to make room.
        """
        self._check_room()
        visit = Visit(self, cut_off)
        self._coming[visit] = asyncio.get_running_loop().time()
        try:
            yield visit
        finally:
            self.release(visit)

    def hold(self, visit: "Visit", size: int) -> None:
        """Note a body's bytes in memory. Raises Refusal where there is no room and no late body to drop."""
        late = asyncio.get_running_loop().time() - self._limits.late_s
        while self._held_b + size > self._limits.held_bytes:
            oldest = next(iter(self._coming), visit)
            if oldest is visit or self._coming[oldest] > late:
                raise self._busy()
            self.release(oldest)
            oldest.cut_off()
        self._held_b += size
        visit.held_b += size

    def release(self, visit: "Visit") -> None:
        """Give back what a body held."""
        self._coming.pop(visit, None)
        self._held_b -= visit.held_b
        visit.held_b = 0

    def whole(self, visit: "Visit") -> None:
        """Note that a body is complete: it keeps its room until it is answered."""
        self._coming.pop(visit, None)

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """Do the work in a thread when a thread is free. Raises Refusal where that takes too long."""
        self._check_room()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._limits.patience_s):
                await self._turns.acquire()
        except TimeoutError as error:
            raise self._busy() from error
        finally:
            self._waiting -= 1
        try:
            return await self._threads.run("", work)
        finally:
            self._turns.release()

    def _check_room(self) -> None:
        if self._waiting >= self._limits.waiting:
            raise self._busy()

    def _busy(self) -> Refusal:
        self._put_off()
        return Refusal(LATER, "the hub is overloaded: too many batches at the same time", retry_after=RETRY_AFTER_S)


class Visit:
    """One admitted batch."""

    def __init__(self, gate: AdmissionControl, cut_off: Callable[[], None]) -> None:
        self._gate = gate
        self.cut_off = cut_off
        self.held_b = 0

    async def counted(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks of the batch's body, as long as there is room for them. Raises Refusal."""
        async for chunk in chunks:
            self._gate.hold(self, len(chunk))
            yield chunk
        self._gate.whole(self)

    async def in_thread(self, work: Callable[[], _T]) -> _T:
        """Do the work in a thread when a thread is free. Raises Refusal."""
        return await self._gate.in_thread(work)


class PerUserLimit:
    """Counts requests in work by user; for one event loop. Operators, staff and daemons are not counted."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._busy: Counter[str] = Counter()

    @contextlib.contextmanager
    def taken(self, scope: Scope) -> Iterator[None]:
        """Hold one of a caller's places for the length of the block. Raises Refusal 429 where none is free."""
        user = scope.bounded_user
        if not user:
            yield
            return
        if self._busy[user] >= self._most:
            raise Refusal(TOO_MANY, f"{self._most} requests of this user are in progress: try again", retry_after=1)
        self._busy[user] += 1
        try:
            yield
        finally:
            self._busy[user] -= 1
            if not self._busy[user]:
                del self._busy[user]
