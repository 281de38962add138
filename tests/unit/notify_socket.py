"""The socket of systemd's side: what a daemon tells it can be read as datagrams."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def notify_socket(directory: Path, timeout_s: float) -> Iterator[socket.socket]:
    """Give a socket that waits up to `timeout_s` for a datagram; its address is what NOTIFY_SOCKET names."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(directory / "notify"))
        sock.settimeout(timeout_s)
        yield sock


def said(listener: socket.socket) -> list[str]:
    """Return all datagrams that are there."""
    found = []
    before = listener.gettimeout()
    listener.settimeout(0)
    try:
        while True:
            found.append(listener.recv(4096).decode())
    except BlockingIOError:
        return found
    finally:
        listener.settimeout(before)
