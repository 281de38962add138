"""SlowLink: a loopback port that leads to a server's Unix socket, as over a distance: each byte arrives later.

with SlowLink(postgres.socket, 0.025) as link:
    ...  # connect to 127.0.0.1, link.port: an exchange takes 50 ms and its own time
"""

import contextlib
import socket
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Final, Self

_MOST_B: Final = 1 << 16


class SlowLink:
    """Forwards connections; bytes take `delay_s` in each direction, however many are on their way."""

    def __init__(self, target: Path, delay_s: float) -> None:
        self._target = str(target)
        self._delay_s = delay_s
        self.exchanges = 0
        """How often the clients sent something: of a protocol of question and answer the round trips."""
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._thread = threading.Thread(target=self._accept, name="slow link", daemon=True)

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
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            left = list(self._open)
        for one in left:
            _end(one)
        self._thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            with self._lock:
                self._open |= {client, server}
            try:
                server.connect(self._target)
            except OSError:
                self._leave(client, server)
                continue
            threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        """Forward both directions until one side ends, or the link does."""
        parts = [self._forward(client, server, counted=True), self._forward(server, client, counted=False)]
        for part in parts:
            part.join()
        self._leave(client, server)

    def _forward(self, source: socket.socket, target: socket.socket, *, counted: bool) -> threading.Thread:
        """Return the thread that sends on what another one receives and dates."""
        waiting: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

        def receive() -> None:
            data = b"-"
            while data:
                try:
                    data = source.recv(_MOST_B)
                except OSError:
                    data = b""
                if counted and data:
                    with self._lock:
                        self.exchanges += 1
                waiting.put((time.monotonic() + self._delay_s, data))

        def send() -> None:
            while True:
                due, data = waiting.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    with contextlib.suppress(OSError):
                        target.shutdown(socket.SHUT_WR)
                    return
                try:
                    target.sendall(data)
                except OSError:
                    _end(source)

        threading.Thread(target=receive, daemon=True).start()
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        return sender

    def _leave(self, *connections: socket.socket) -> None:
        with self._lock:
            self._open -= set(connections)
        for one in connections:
            _end(one)
            one.close()


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
