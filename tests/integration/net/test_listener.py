"""A listening socket keeps the kernel's queue that it was made with, whatever a server asks for later."""

import asyncio
import socket
import struct
from collections.abc import Callable

import pytest

from gpuwaste.hub.server import open_tcp
from gpuwaste.net.connection_limiter import ConnectionLimiter, LimitedListener

_QUEUE_AT = 28  # tcpi_sacked of TCP_INFO: of a listening socket its longest queue


def queue_of(sock: socket.socket) -> int:
    """Return how many connections the kernel keeps for a socket."""
    found: int = struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 64), _QUEUE_AT)[0]
    return found


@pytest.mark.parametrize("taken_over", [lambda sock: sock, lambda sock: LimitedListener.of(sock, ConnectionLimiter(9))])
def test_a_server_does_not_shorten_the_queue(taken_over: Callable[[socket.socket], socket.socket]) -> None:
    """A server of asyncio listens again with the few that it accepts at once: the queue stays as it was."""

    async def served() -> int:
        async with await asyncio.start_server(lambda *_: None, sock=sock, backlog=4):
            return queue_of(sock)

    sock = taken_over(open_tcp("127.0.0.1:0"))
    with sock:
        before = queue_of(sock)
        assert before > 128
        assert asyncio.run(served()) == before
