"""Places of readers who stay connected: reserved where they are checked, and held by the answer to its end."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from gpuwaste.core.refusal import LATER, TOO_MANY, Refusal

OF_USER: Final = 4
_AFTER_S: Final = 60


class Places:
    """Bounds the connected readers, in total and per user; for one event loop."""

    def __init__(self, in_all: int, kept: int = 0) -> None:
        """`kept` of all places are reserved for callers who are not bounded: operators, staff and daemons."""
        self._in_all = in_all
        self._kept = kept
        self._taken = 0
        self._of_user: Counter[str] = Counter()

    @contextmanager
    def taken(self, user: str, *, bounded: bool = True) -> Iterator[None]:
        """Hold a place for the length of the block. Raises Refusal: 429 for this user, 503 where all are taken."""
        if bounded and self._of_user[user] >= OF_USER:
            raise Refusal(TOO_MANY, f"{OF_USER} streams of this user are open: close one", retry_after=_AFTER_S)
        free = self._in_all - self._taken
        if free <= 0 or (bounded and self._of_user.total() >= self._in_all - self._kept):
            raise Refusal(LATER, f"{self._in_all} streams are open: try again later", retry_after=_AFTER_S)
        self._taken += 1
        self._of_user += Counter({user: int(bounded)})
        try:
            yield
        finally:
            self._taken -= 1
            self._of_user -= Counter({user: int(bounded)})


class PlacedStream(StreamingResponse):
    """A stream that gives its place back when it ends, however it ends."""

    def __init__(
        self, content: AsyncIterator[bytes], place: AbstractContextManager[object], headers: Mapping[str, str]
    ) -> None:
        """`place` is held already; leaving it gives it back."""
        super().__init__(content, media_type="text/event-stream", headers={**headers, "X-Accel-Buffering": "no"})
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream; the connection knows that it has no end, so that no stop of the hub waits for it."""
        with self._place, scope["state"]["streaming"]():
            await super().__call__(scope, receive, send)
