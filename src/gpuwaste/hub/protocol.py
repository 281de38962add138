"""The hub's HTTP/1.1: uvicorn's, with the deadlines and bounds that it lacks, and the peer's uid."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from gpuwaste.net.connection_limiter import ConnectionLimiter, LimitedListener
from gpuwaste.net.peers import ends_of, peer_uid

_NO_LINGER: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of connections: seconds for a head, seconds without reading an answer, how many may be incomplete."""

    header_s: float = 10.0
    write_s: float = 60.0
    waiting: int = 3072  # more than two thousand agents have at once


BOUNDS: Final = Bounds()


class HubProtocol(H11Protocol):
    """HTTP/1.1 that knows the peer of a Unix socket, and disconnects a client that does not complete its request."""

    header_deadline_s = BOUNDS.header_s
    write_deadline_s = BOUNDS.write_s
    limiter = ConnectionLimiter(BOUNDS.waiting)
    listener: LimitedListener | None = None  # which counts connections during their handshake
    _impatient: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _peer: Hashable = None
    _streaming = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note the peer, and start the deadline."""
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if self.listener is not None:
            self.listener.arrived(sock.fileno())  # from here on it is counted as this connection
        uid = peer_uid(sock)
        own = {"peer_uid": uid, "ends": ends_of(sock), "cut_off": self.cut_off, "streaming": self.streaming}
        self.app_state = {**self.app_state, **own}
        self._peer = uid if uid is not None else (transport.get_extra_info("peername") or ("",))[0]
        self._impatient = self.loop.call_later(self.header_deadline_s, self._give_up)
        self._count()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; a request whose head is complete has its own deadline from then on."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete and self._impatient is not None:
            self._impatient.cancel()
            self._impatient = None
        elif self._impatient is None and (self.cycle is None or self.cycle.response_complete):
            self._impatient = self.loop.call_later(self.header_deadline_s, self._give_up)
        self._count()

    def on_response_complete(self) -> None:
        """Wait for the next request of the same connection."""
        super().on_response_complete()
        self._count()

    def pause_writing(self) -> None:
        """Start the deadline for reading: the client has not read its answer."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.write_deadline_s, self.cut_off)

    def resume_writing(self) -> None:
        """Stop that deadline: the client reads."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadlines."""
        for timer in (self._impatient, self._unread):
            if timer is not None:
                timer.cancel()
        self.limiter.have(self._peer, self)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End at the server's stop: a stream at once, since it has no end of its own; another answer when complete."""
        if self._streaming:
            self.transport.close()
        super().shutdown()

    def cut_off(self) -> None:
        """Close the connection at once; unsent data is dropped."""
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()

    @contextlib.contextmanager
    def streaming(self) -> Iterator[None]:
        """Mark the answer of the block as a stream."""
        self._streaming = True
        try:
            yield
        finally:
            self._streaming = False

    def _count(self) -> None:
        """Count the connection while its request, body included, is incomplete."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.limiter.wait_for(self._peer, self)
        else:
            self.limiter.have(self._peer, self)

    def _give_up(self) -> None:
        self._impatient = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()
