"""Connections to Unix sockets: whoever finds the listener's queue full waits, and not for ever."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwaste.core.unix_socket import connect_unix

pytestmark = pytest.mark.sockets


@pytest.fixture
def full(tmp_path: Path) -> Iterator[tuple[Path, socket.socket]]:
    """Return the path of a listener whose queue has no more room, and the listener."""
    path = tmp_path / "full.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen(0)
        first.connect(str(path))
        yield path, listener


def test_a_full_queue_is_waited_for(full: tuple[Path, socket.socket]) -> None:
    """A connection to a listener whose queue is full is made as soon as the listener takes one from it."""
    path, listener = full
    with pytest.raises(BlockingIOError), socket.socket(socket.AF_UNIX) as hasty:
        hasty.settimeout(30)
        hasty.connect(str(path))
    made: list[socket.socket] = []
    thread = threading.Thread(target=lambda: made.append(connect_unix(path, 30)))
    thread.start()
    with listener.accept()[0]:
        thread.join(30)
        with listener.accept()[0] as served, made[0] as client:
            served.sendall(b"x")
            assert client.recv(1) == b"x"


def test_the_wait_ends(full: tuple[Path, socket.socket]) -> None:
    """A listener that never takes a connection is given up after the time that was given."""
    with pytest.raises(OSError, match="unavailable"):
        connect_unix(full[0], 0.05)


def test_nobody_listens(tmp_path: Path) -> None:
    """A path with no listener fails at once."""
    with pytest.raises(FileNotFoundError):
        connect_unix(tmp_path / "none.sock", 30)
