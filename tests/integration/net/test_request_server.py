"""RequestServer: what is cut off asks nothing, so that it takes no honest request's place."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from gpuwaste.net.request_server import Request, RequestLimits, RequestServer

_LIMITS = RequestLimits(end=b"\n", most=100, deadline_s=60.0, connections=4, workers=1)


class _Slow:
    """Answers when it is let go, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.begun = threading.Event()
        self.go = threading.Event()

    def __call__(self, request: Request) -> bytes:
        self.asked.append(request.data)
        self.begun.set()
        self.go.wait(60)
        return b"answer to " + request.data


@pytest.fixture(name="slow")
def _slow() -> _Slow:
    return _Slow()


@pytest.fixture(name="connect")
def _connect(slow: _Slow) -> Iterator["_Connect"]:
    server = RequestServer("slow", socket.create_server(("127.0.0.1", 0)), slow, _LIMITS)
    server.start()
    with contextlib.ExitStack() as stack:
        yield _Connect(server.address, stack)
        slow.go.set()
        server.stop()


class _Connect:
    def __init__(self, address: tuple[str, int], stack: contextlib.ExitStack) -> None:
        self._address = address
        self._stack = stack

    def __call__(self, sent: bytes) -> socket.socket:
        client = self._stack.enter_context(socket.create_connection(self._address, 60))
        client.sendall(sent)
        return client


@pytest.mark.long
def test_half_a_request_that_is_cut_off_is_not_asked(slow: _Slow, connect: "_Connect") -> None:
    """Twelve halves of a request, of which eight are cut off while the worker is busy: a whole one is answered."""
    first = connect(b"first\n")
    assert slow.begun.wait(60)
    halves = [connect(b"half") for _ in range(12)]
    for half in halves[:8]:
        with contextlib.suppress(ConnectionResetError):
            assert half.recv(1) == b""
    whole = connect(b"whole\n")
    slow.go.set()
    assert (first.recv(100), whole.recv(100)) == (b"answer to first\n", b"answer to whole\n")
    assert slow.asked == [b"first\n", b"whole\n"]
