"""Serves connections of one request and one answer each, on threads that are all started at the beginning.

One thread accepts connections and reads requests, however many there are and however slowly they send; a few others
answer. So a flood needs no more threads, and nothing fails because a thread cannot be started.
"""

import asyncio
import contextlib
import logging
import queue
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.core.log_event import BUG
from gpuwaste.net.connection_limiter import ConnectionLimiter, LimitedListener
from gpuwaste.net.peers import peer_uid

_ACCEPTS: Final = 16  # accepted before the open ones are read
_OPEN_TIMES: Final = 4  # connections in total, including those with a complete request that have not read their answer
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of a connection: a request ends with `end`, after `most` bytes, or at its deadline."""

    end: bytes
    most: int
    deadline_s: float  # for the request, and again for reading the answer
    connections: int = 64
    workers: int = 2


@dataclass(frozen=True, slots=True)
class Request:
    """The received data, and the uid of its sender over a Unix socket."""

    data: bytes
    uid: int | None


class RequestServer:
    """Answers requests on `listener`, which is closed with it."""

    def __init__(
        self,
        name: str,
        listener: socket.socket,
        answer: Callable[[Request], bytes],
        limits: RequestLimits,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.limits = limits
        self._listener = LimitedListener.of(listener, ConnectionLimiter(limits.connections))
        self._answer = answer
        self._tls = tls
        self._asked: queue.Queue[_Conversation | None] = queue.Queue(limits.connections + limits.workers)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_trouble)
        self._open: set[_Conversation] = set()
        self._stop = asyncio.Event()
        self._workers = [
            threading.Thread(target=self._work, name=f"{name} {number}", daemon=True)
            for number in range(limits.workers)
        ]
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def address(self) -> Any:
        """Where it listens."""
        return self._listener.getsockname()

    def start(self) -> None:
        """Start to answer."""
        for thread in (*self._workers, self._thread):
            thread.start()

    def stop(self) -> None:
        """Stop answering, without waiting for a request in progress."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        for _ in self._workers:
            with contextlib.suppress(queue.Full):
                self._asked.put_nowait(None)
        self._loop.close()
        self._listener.close()

    def opened(self, conversation: "_Conversation") -> None:
        """Register a connection; on the loop's thread, like the next two."""
        self._open.add(conversation)

    def asked(self, conversation: "_Conversation") -> None:
        """Queue a request for its answer; where too many wait for that, or to be read, the connection is closed."""
        wanted = self._listener.arrived(conversation.number)
        if not wanted or len(self._open) > _OPEN_TIMES * self.limits.connections:
            conversation.end()
            return
        try:
            self._asked.put_nowait(conversation)
        except queue.Full:
            conversation.end()

    def closed(self, conversation: "_Conversation") -> None:
        """Forget a connection."""
        self._open.discard(conversation)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await self._loop.create_server(
            lambda: _Conversation(self, self._loop),
            sock=self._listener,
            ssl=self._tls,
            ssl_handshake_timeout=None if self._tls is None else self.limits.deadline_s,
            backlog=_ACCEPTS,
        )
        await self._stop.wait()
        server.close()
        for conversation in list(self._open):
            conversation.end()

    def _work(self) -> None:
        while (conversation := self._asked.get()) is not None:
            if conversation.gone:
                continue
            try:
                answer = self._answer(conversation.request)
            except Exception as error:  # noqa: BLE001 a defect in one answer must not end the thread
                BUG.log(error, what="answer")
                answer = b""
            with contextlib.suppress(RuntimeError):  # the loop has been closed
                self._loop.call_soon_threadsafe(conversation.answered, answer)


class _Conversation(asyncio.Protocol):
    """One connection; only the loop calls its methods, `_work` only reads attributes."""

    def __init__(self, server: RequestServer, loop: asyncio.AbstractEventLoop) -> None:
        self.request = Request(b"", None)
        self.gone = False
        self._server = server
        self._loop = loop
        self._data = bytearray()
        self._asked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock of the request."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 narrows the type
        self._transport = transport
        self.number = transport.get_extra_info("socket").fileno()
        self._clock = self._loop.call_later(self._server.limits.deadline_s, self._late)
        self._server.opened(self)

    def data_received(self, data: bytes) -> None:
        """Add data to the request; data after its end is dropped."""
        if self._asked:
            return
        self._data += data
        if self._server.limits.end in self._data or len(self._data) > self._server.limits.most:
            self._ask()

    def eof_received(self) -> bool:
        """Take the data received before the end as the request; the answer is still sent."""
        if not self._asked and self._data:
            self._ask()
        return self._asked and self._transport.get_extra_info("sslcontext") is None

    def answered(self, answer: bytes) -> None:
        """Send the answer and close, once the peer has read it or its time is over."""
        if self.gone:
            return
        self._clock = self._loop.call_later(self._server.limits.deadline_s, self._transport.abort)
        self._transport.write(answer)
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 a peer that hangs up is no event of ours
        """Stop the clock."""
        self.gone = True
        self._clock.cancel()
        self._server.closed(self)

    def end(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    def _late(self) -> None:
        """Answer an incomplete request, so that its sender learns why; a connection without data is closed."""
        if self._data:
            self._ask()
        else:
            self.end()

    def _ask(self) -> None:
        self._asked = True
        self._clock.cancel()
        self.request = Request(bytes(self._data), peer_uid(self._transport.get_extra_info("socket")))
        self._data.clear()
        self._server.asked(self)


def _trouble(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what asyncio could not do for one connection, such as a handshake, or an accept without a free descriptor."""
    _log.debug("connection failed: %s: %s", context.get("message"), context.get("exception"))
