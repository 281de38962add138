"""LoopbackPort: a port on loopback whose connections a test's server or proxy serves, until the end of a block."""

import contextlib
import socket
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class LoopbackPort(ABC):
    """Serves each connection in a thread of its own; what is open at the end of the block is shut down."""

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._thread = threading.Thread(target=self._accept, name=name, daemon=True)

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shut(self._listener)
        self._listener.close()
        with self._lock:
            left = list(self._open)
        for connection in left:
            shut(connection)
        self._thread.join(5)

    @abstractmethod
    def _serve(self, client: socket.socket) -> None:
        """Serve a connection, in a thread of its own; whatever is opened for it is entered, and left at the end."""

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _enter(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            self._open.add(connection)
        return connection

    def _leave(self, *connections: socket.socket) -> None:
        with self._lock:
            self._open -= set(connections)
        for connection in connections:
            shut(connection)
            connection.close()


def shut(connection: socket.socket) -> None:
    """End both directions; who waits for it learns of it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
