"""A listening socket that keeps its queue, and one whose connections are counted from the moment they are taken.

asyncio tells of a TLS connection only after its handshake: what never makes one would be counted by nobody.
"""

import contextlib
import socket
import struct
from collections.abc import Hashable
from typing import Any, Final

from gpuwaste.net.connection_limiter import ConnectionLimiter
from gpuwaste.net.peer import peer_uid

BACKLOG: Final = 128  # connections that the kernel keeps for us, at least
_NO_LINGER: Final = struct.pack("ii", 1, 0)


class Listener(socket.socket):
    """Keeps the longest queue that it had: asyncio's one number is both, that queue and what it accepts at once."""

    queue: int = 0

    def listen(self, backlog: int = 0, /) -> None:
        """Listen, with a queue that is never shorter than before."""
        self.queue = max(backlog, self.queue)
        super().listen(self.queue)


class LimitedListener(Listener):
    """Counts each connection as one that waits until it is closed, or `arrived` names it; for one event loop."""

    limiter: ConnectionLimiter
    _taken: dict[int, "_Connection"]

    @classmethod
    def of(cls, listener: socket.socket, limiter: ConnectionLimiter) -> "LimitedListener":
        """Take over a listening socket; the one that was given is closed."""
        new = cls(listener.family, listener.type, listener.proto, fileno=listener.detach())
        new.limiter, new._taken = limiter, {}
        new.queue = max(BACKLOG, getattr(listener, "queue", 0))
        return new

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection and its address."""
        plain, address = super().accept()
        connection = _Connection(plain.family, plain.type, plain.proto, fileno=plain.detach())
        connection.listener = self
        uid = peer_uid(connection)
        connection.peer = address[0] if uid is None else uid
        self._taken[connection.fileno()] = connection
        self.limiter.wait_for(connection.peer, connection)
        return connection, address

    def arrived(self, number: int) -> bool:
        """Count the connection with this descriptor no more; returns False for one that had been cut off."""
        connection = self._taken.pop(number, None)
        if connection is None:
            return True
        self.limiter.have(connection.peer, connection)
        return not connection.was_cut


class _Connection(socket.socket):
    listener: LimitedListener
    peer: Hashable
    was_cut = False

    def cut_off(self) -> None:
        """End it at once: whoever reads it finds what had come, then its end, and closes it."""
        self.was_cut = True
        with contextlib.suppress(OSError):
            self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it and count it no more."""
        self.listener.arrived(self.fileno())
        super().close()
